/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: place the allocation sets of a job on its rabbits.
 *
 * The rules, set by set:
 * - AllocatePerCompute: below each rabbit one allocation for each node.
 * - AllocatePerServer: one on each rabbit.
 * - AllocateSingleServer, and AllocateAcrossServers with 'count': so many,
 *   always on the rabbit with the fewest of them, and among those on the one
 *   with most room (most of the job's nodes, where room is not known).
 * - AllocateAcrossServers otherwise: 'scale' tells how many. 1 is the fewest
 *   that fit, 5 (the default) one on each rabbit, 10 as many as there are
 *   compute nodes; the steps between are even. The allocations have the same
 *   size. If that many do not fit into the job's reservation, the nearest
 *   number that does is taken.
 * Where sets may lie anywhere the job's own rabbits come first, then those with most
 * room. Such a set may need more allocations than compute nodes to fit.
 * A set with an exclusive colocation key has at most one allocation on a
 * rabbit, and shares no rabbit with another set that has the key.
 */

#ifndef LIBDWS_PLACE_PRIVATE_H
#define LIBDWS_PLACE_PRIVATE_H

#include "layout_private.h"

/* Place all sets of a layout whose rabbits have been filled in. Fails with
 * ENOSPC, with EHOSTDOWN if a rabbit that is not in order may be why, or with
 * EINVAL if the rabbits that the job has can never do.
 */
int place_all (struct layout *lay, dws_error_t *error);

#endif /* !LIBDWS_PLACE_PRIVATE_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: place the allocation sets of a job on its rabbits.
 *
 * What is decided here, set by set:
 * - AllocatePerCompute: below each rabbit one allocation for each node.
 * - AllocatePerServer: one on each rabbit.
 * - AllocateSingleServer, and AllocateAcrossServers with 'count': so many,
 *   always on the rabbit with the fewest of them, and among those on the one
 *   with most room (most of the job's nodes, where room is not known).
 * - AllocateAcrossServers otherwise: 'scale' tells how many. 1 is the fewest
 *   that fit, 5 one on each rabbit, 10 as many as there are compute nodes;
 *   the steps between are even. Without 'scale' it is as with 5. All have
 *   the same size. If that many do not fit into what is set aside for the
 *   job, the nearest number that does is taken.
 * A set with an exclusive colocation key has at most one allocation on a
 * rabbit, and shares no rabbit with another set that has the key.
 */

#ifndef LIBDWS_LAYOUT_H
#define LIBDWS_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "allocset.h"
#include "error.h"

struct layout_rabbit {
    const char *name;
    int64_t nodes;        // of the job
    const char *fault;    // why it cannot be used, or NULL
    json_t *labels;       // of its Storage, NULL if not known
    bool known;           // 'room' is what is really left
    int64_t room;         // bytes
    int64_t reserved;     // bytes the scheduler has set aside for the job
};

struct layout_place {
    const struct breakdown *breakdown;
    const struct alloc_set *set;
    bool placed;
    int64_t size;         // of each allocation, bytes
    int64_t *counts;      // by rabbit
};

struct layout {
    struct layout_rabbit *rabbits;
    size_t nrabbits;
    struct layout_place *places;
    size_t nplaces;
    int64_t min_bytes;
};

#define LAYOUT_UNLIMITED (INT64_MAX / 4)

/* Make room for the sets of 'bl' and for 'nrabbits' rabbits, which the
 * caller then fills in.
 */
struct layout *layout_create (const struct breakdown_list *bl,
                              size_t nrabbits);
void layout_destroy (struct layout *lay);

/* Place all sets. Fails with ENOSPC, with EHOSTDOWN if a rabbit that is not in
 * order may be why, or with EINVAL if the rabbits that the job has can never do.
 */
int layout_run (struct layout *lay, dws_error_t *error);

#endif /* !LIBDWS_LAYOUT_H */

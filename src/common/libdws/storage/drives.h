/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The drives of a rabbit, and what fits on them.
 *
 * NNF makes a pool on the 16 drives of a rabbit that have the most room, with
 * the same number of 4 KiB blocks on each; where drives are lost it takes as many
 * as there are, but not fewer than 14. The allocations of a set on a rabbit
 * share a pool, except for Lustre, where each has its own. A pool can therefore
 * be smaller than the free space, and which drives it is on depends on all pools
 * that were made and deleted before.
 *
 * The functions promise only space that a pool gets in every such case: each pool
 * may take its share of each drive. More cannot be promised as long as some drives
 * are shared by all pools, which is always so with up to seven pools.
 */

#ifndef LIBDWS_DRIVES_H
#define LIBDWS_DRIVES_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "bytes.h"

#define DWS_DRIVES_OF_RABBIT 18
#define DWS_DRIVES_OF_POOL 16

struct dws_drives {
    int found;                  // drives that Storage lists
    int ready;                  // those that can be used
    int wear;                   // percent, of the most worn of these; -1: not told
    int64_t raw;                // bytes of these
    int width;                  // drives that a pool gets, 0: too few
    int64_t usable;             // bytes that pools can have in all, for sure
};

/* Read the drives from Storage.status ('status', or NULL): their own sizes and
 * states. Storage.status.capacity is what was free when somebody last looked,
 * and counts only where no drives are listed: then it is all usable.
 */
void dws_drives_read (json_t *status, struct dws_drives *drives);

/* Bytes that a rabbit with these drives can still promise, where pools have 'taken'
 * bytes of it.
 */
int64_t dws_drives_room (const struct dws_drives *drives, int64_t taken);

/* The bytes that a pool of this size takes of 'width' drives, INT64_MAX on overflow.
 */
int64_t dws_drives_pool (int64_t size, int width);

/* Do the allocations of a set with this label share a pool?
 */
bool dws_drives_shared (const char *label);

/* The smallest allocation, in bytes, that NNF makes of a set with this label: a smaller
 * request gets this size. 0: NNF makes any size.
 */
int64_t dws_drives_least (const char *label);

/* The bytes that 'count' allocations of this size take of 'width' drives.
 */
int64_t dws_drives_take (const char *label,
                         int64_t size,
                         int64_t count,
                         int width);

/* Add the bytes that a Servers object takes on rabbits. The wanted sizes (spec) count
 * from when they are written, the made sizes (status) once all allocations exist; after
 * their release neither counts. Malformed parts take nothing.
 */
void dws_drives_taken (json_t *servers, struct dws_bytes *taken);

#endif /* !LIBDWS_DRIVES_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: what layout.c and spread.c share.
 */

#ifndef LIBDWS_LAYOUT_INTERNAL_H
#define LIBDWS_LAYOUT_INTERNAL_H

#include "layout.h"

/* The exclusive colocation key that both sets have, or NULL.
 */
const char *layout_shared_key (const struct alloc_set *a,
                               const struct alloc_set *b);

bool layout_is_exclusive (const struct alloc_set *set);

/* May the set have allocations on rabbit 'r', space aside?
 */
bool layout_usable (const struct layout *lay,
                    const struct layout_place *p,
                    size_t r);

/* Size of one of 'n' equal allocations of a set.
 */
int64_t layout_size_of (const struct layout *lay,
                        const struct layout_place *p,
                        int64_t n);

/* How many allocations of this size rabbit 'r' can take for the set.
 */
int64_t layout_capacity_of (const struct layout *lay,
                            const struct layout_place *p,
                            size_t r,
                            int64_t size,
                            bool within_reserved);

/* Report that 'n' allocations of this size cannot be placed. Returns -1.
 */
int layout_fail (const struct layout *lay,
                 const struct layout_place *p,
                 int64_t n,
                 int64_t size,
                 dws_error_t *error);

/* Take the space of the allocations in p->counts; the set is placed.
 */
void layout_commit (struct layout *lay, struct layout_place *p, int64_t size);

/* Place a set whose number of allocations is ours to choose.
 */
int layout_place_flexible (struct layout *lay,
                           struct layout_place *p,
                           dws_error_t *error);

#endif /* !LIBDWS_LAYOUT_INTERNAL_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: the rabbits of a job, its allocation sets, and what of them has
 * been placed where; what a set may use, and what still fits. place.c places the
 * sets, and spread.c those that may be divided at will.
 */

#ifndef LIBDWS_LAYOUT_PRIVATE_H
#define LIBDWS_LAYOUT_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/util/error.h"
#include "allocset_private.h"

struct layout_rabbit {
    const char *name;
    int64_t nodes;        // of the job; 0: it is not the job's, and only
                          //  sets that roam may lie there
    const char *fault;    // why it cannot be used, or NULL
    json_t *labels;       // of its Storage, NULL if it has none
    json_t *keys;         // owned: {KEY: who has it exclusively}, or NULL
    bool known;           // its Storage has been looked at: 'labels' are
                          //  all, 'room' is what is really left
    int width;            // drives of a pool
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
    bool anywhere;        // sets that roam may lie on any of them
};

#define LAYOUT_UNLIMITED (INT64_MAX / 4)

/* Make room for the sets of 'bl', with 'bound' for those that are bound to nodes
 * only, and for 'nrabbits' rabbits, which the caller then fills in.
 */
struct layout *layout_create (const struct dws_breakdowns *bl,
                              bool bound,
                              size_t nrabbits);
void layout_destroy (struct layout *lay);

/* The Storage objects (allocation.h) by name: a new reference. Fails with EINVAL or
 * ENOMEM.
 */
json_t *layout_storages (json_t *storages, dws_error_t *error);

/* The exclusive colocation key that both sets have, or NULL.
 */
const char *layout_shared_key (const struct alloc_set *a,
                               const struct alloc_set *b);

bool layout_is_exclusive (const struct alloc_set *set);

/* The reason why the set cannot have allocations on rabbit 'r', space aside,
 * or NULL. The text is in 'buf' or belongs to the layout.
 */
const char *layout_obstacle (const struct layout *lay,
                             const struct layout_place *p,
                             size_t r,
                             char *buf,
                             size_t size);

/* Is there no such reason, and for how many rabbits?
 */
bool layout_usable (const struct layout *lay,
                    const struct layout_place *p,
                    size_t r);
size_t layout_count_usable (const struct layout *lay,
                            const struct layout_place *p);

/* Size of one of 'n' equal allocations of a set.
 */
int64_t layout_size_of (const struct layout *lay,
                        const struct layout_place *p,
                        int64_t n);

/* The bytes that so many allocations of this size take of rabbit 'r'.
 */
int64_t layout_cost (const struct layout *lay,
                     const struct layout_place *p,
                     size_t r,
                     int64_t size,
                     int64_t count);

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

#endif /* !LIBDWS_LAYOUT_PRIVATE_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * A map from an integer that is not 0 (job id, sequence number) to a pointer. New ids
 * are mostly larger than those before.
 */

#ifndef DWS_IDMAP_H
#define DWS_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idmap;

typedef void (*idmap_free_f)(void *value);
typedef void (*idmap_each_f)(uint64_t id, void *value, void *arg);

/* 'destroy' (may be NULL) is called on each value that leaves the map.
 */
struct idmap *idmap_create (idmap_free_f destroy);
void idmap_destroy (struct idmap *map);

/* Fails with EEXIST or ENOMEM; the value is then still the caller's.
 */
int idmap_insert (struct idmap *map, uint64_t id, void *value);

void *idmap_find (const struct idmap *map, uint64_t id);

/* The value with the lowest id above 'after', or NULL.
 */
void *idmap_next (const struct idmap *map, uint64_t after);

void idmap_delete (struct idmap *map, uint64_t id);

/* Take a value out without destroying it. NULL if there is none for this id.
 */
void *idmap_take (struct idmap *map, uint64_t id);

void idmap_clear (struct idmap *map);
size_t idmap_count (const struct idmap *map);

/* In the order of ids. The callback may delete entries; it must not insert.
 */
void idmap_each (struct idmap *map, idmap_each_f cb, void *arg);

#endif /* !DWS_IDMAP_H */

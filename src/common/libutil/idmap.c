/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See idmap.h: an array sorted by id. A deleted entry stays in place without a value
 * until the array is full.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libutil/idmap.h"

#define INITIAL_SIZE 64

struct entry {
    uint64_t id;
    void *value;            // NULL: deleted
};

struct idmap {
    struct entry *entries;
    size_t size;
    size_t used;            // entries, with or without a value
    size_t count;           // with a value
    idmap_free_f destroy;
};

struct idmap *idmap_create (idmap_free_f destroy)
{
    struct idmap *map;

    if (!(map = calloc (1, sizeof (*map))))
        return NULL;
    map->size = INITIAL_SIZE;
    map->destroy = destroy;
    if (!(map->entries = calloc (map->size, sizeof (map->entries[0])))) {
        free (map);
        return NULL;
    }
    return map;
}

void idmap_destroy (struct idmap *map)
{
    if (map) {
        ERRNO_SAFE_BLOCK;
        idmap_clear (map);
        free (map->entries);
        free (map);
    }
}

void idmap_clear (struct idmap *map)
{
    for (size_t i = 0; i < map->used; i++) {
        void *value = map->entries[i].value;

        if (!value)
            continue;
        map->entries[i].value = NULL;
        map->count--;
        if (map->destroy)
            map->destroy (value);
    }
    map->used = 0;
}

/* The index of the lowest id that is not below 'id'.
 */
static size_t find_place (const struct idmap *map, uint64_t id)
{
    size_t low = 0;
    size_t high = map->used;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (map->entries[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct entry *find_entry (const struct idmap *map, uint64_t id)
{
    size_t i = find_place (map, id);

    return i < map->used && map->entries[i].id == id ? &map->entries[i] : NULL;
}

static void drop_empty (struct idmap *map)
{
    size_t to = 0;

    for (size_t i = 0; i < map->used; i++) {
        if (map->entries[i].value)
            map->entries[to++] = map->entries[i];
    }
    map->used = to;
}

/* Make room so that at least half of the array is free, lest the next call
 * follow too soon.
 */
static int make_room (struct idmap *map)
{
    struct entry *entries;

    drop_empty (map);
    if (map->used <= map->size / 2)
        return 0;
    if (!(entries = reallocarray (map->entries, 2 * map->size,
                                  sizeof (entries[0]))))
        return -1;
    map->entries = entries;
    map->size *= 2;
    return 0;
}

int idmap_insert (struct idmap *map, uint64_t id, void *value)
{
    struct entry *e = find_entry (map, id);
    size_t i;

    if (e && e->value) {
        errno = EEXIST;
        return -1;
    }
    if (!e) {
        if (map->used == map->size && make_room (map) < 0)
            return -1;
        i = find_place (map, id);
        e = &map->entries[i];
        memmove (e + 1, e, (map->used++ - i) * sizeof (*e));
        e->id = id;
    }
    e->value = value;
    map->count++;
    return 0;
}

void *idmap_find (const struct idmap *map, uint64_t id)
{
    struct entry *e = find_entry (map, id);

    return e ? e->value : NULL;
}

void *idmap_next (const struct idmap *map, uint64_t after)
{
    if (after == UINT64_MAX)
        return NULL;
    for (size_t i = find_place (map, after + 1); i < map->used; i++) {
        if (map->entries[i].value)
            return map->entries[i].value;
    }
    return NULL;
}

void *idmap_take (struct idmap *map, uint64_t id)
{
    struct entry *e = find_entry (map, id);
    void *value;

    if (!e || !(value = e->value))
        return NULL;
    e->value = NULL;
    map->count--;
    return value;
}

void idmap_delete (struct idmap *map, uint64_t id)
{
    void *value = idmap_take (map, id);

    if (value && map->destroy)
        map->destroy (value);
}

size_t idmap_count (const struct idmap *map)
{
    return map->count;
}

void idmap_each (struct idmap *map, idmap_each_f cb, void *arg)
{
    for (size_t i = 0; i < map->used; i++) {
        if (map->entries[i].value)
            cb (map->entries[i].id, map->entries[i].value, arg);
    }
}

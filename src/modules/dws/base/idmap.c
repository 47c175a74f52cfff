/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See idmap.h: hashing with chains, the table doubles when it is full.
 */

#include <errno.h>
#include <stdlib.h>

#include "libutil/errno_safe.h"
#include "base/idmap.h"

#define INITIAL_SLOTS 64

struct entry {
    uint64_t id;
    void *value;
    struct entry *next;
};

struct idmap {
    struct entry **slots;
    size_t size;            // a power of two
    size_t count;
    idmap_free_f destroy;
};

/* Job ids differ mostly in their upper bits: mix before masking.
 */
static size_t slot_of (uint64_t id, size_t size)
{
    id ^= id >> 32;
    id *= 0x9e3779b97f4a7c15ULL;
    return (id >> 32) & (size - 1);
}

struct idmap *idmap_create (idmap_free_f destroy)
{
    struct idmap *map;

    if (!(map = calloc (1, sizeof (*map))))
        return NULL;
    map->size = INITIAL_SLOTS;
    map->destroy = destroy;
    if (!(map->slots = calloc (map->size, sizeof (map->slots[0])))) {
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
        free (map->slots);
        free (map);
    }
}

void idmap_clear (struct idmap *map)
{
    for (size_t i = 0; i < map->size; i++) {
        struct entry *e;
        while ((e = map->slots[i])) {
            map->slots[i] = e->next;
            map->count--;
            if (map->destroy)
                map->destroy (e->value);
            free (e);
        }
    }
}

static struct entry **find_link (const struct idmap *map, uint64_t id)
{
    struct entry **link = &map->slots[slot_of (id, map->size)];

    while (*link && (*link)->id != id)
        link = &(*link)->next;
    return link;
}

/* Without memory for a larger table the chains just get longer.
 */
static void grow_slots (struct idmap *map)
{
    size_t size = map->size * 2;
    struct entry **slots = calloc (size, sizeof (slots[0]));

    if (!slots)
        return;
    for (size_t i = 0; i < map->size; i++) {
        struct entry *e;
        while ((e = map->slots[i])) {
            struct entry **head = &slots[slot_of (e->id, size)];
            map->slots[i] = e->next;
            e->next = *head;
            *head = e;
        }
    }
    free (map->slots);
    map->slots = slots;
    map->size = size;
}

int idmap_insert (struct idmap *map, uint64_t id, void *value)
{
    struct entry **link = find_link (map, id);
    struct entry *e;

    if (*link) {
        errno = EEXIST;
        return -1;
    }
    if (!(e = calloc (1, sizeof (*e))))
        return -1;
    e->id = id;
    e->value = value;
    *link = e;
    if (++map->count > map->size)
        grow_slots (map);
    return 0;
}

void *idmap_find (const struct idmap *map, uint64_t id)
{
    struct entry *e = *find_link (map, id);

    return e ? e->value : NULL;
}

void *idmap_take (struct idmap *map, uint64_t id)
{
    struct entry **link = find_link (map, id);
    struct entry *e = *link;
    void *value;

    if (!e)
        return NULL;
    value = e->value;
    *link = e->next;
    map->count--;
    free (e);
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

static void each_in_slot (struct idmap *map, size_t i, idmap_each_f cb,
                          void *arg)
{
    struct entry *e = map->slots[i];

    while (e) {
        struct entry *next = e->next;
        cb (e->id, e->value, arg);
        e = next;
    }
}

void idmap_each (struct idmap *map, idmap_each_f cb, void *arg)
{
    for (size_t i = 0; i < map->size; i++)
        each_in_slot (map, i, cb, arg);
}

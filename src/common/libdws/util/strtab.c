/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Open addressing with linear probing; the size is a power of two and at
 * most half of the slots are in use. Entries are never removed.
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "strtab.h"

struct slot {
    const char *key;
    int value;
};

struct strtab {
    struct slot *slots;
    size_t size;
    size_t count;
};

/* FNV-1a, 64 bits */
static uint64_t hash_key (const char *key)
{
    uint64_t h = 14695981039346656037u;

    for (; *key; key++)
        h = (h ^ (unsigned char)*key) * 1099511628211u;
    return h;
}

static struct slot *find_slot (struct slot *slots,
                               size_t size,
                               const char *key)
{
    size_t i = hash_key (key) & (size - 1);

    while (slots[i].key && strcmp (slots[i].key, key) != 0)
        i = (i + 1) & (size - 1);
    return &slots[i];
}

static int resize (struct strtab *tab, size_t size)
{
    struct slot *slots;

    if (!(slots = calloc (size, sizeof (*slots))))
        return -1;
    for (size_t i = 0; i < tab->size; i++) {
        if (tab->slots[i].key)
            *find_slot (slots, size, tab->slots[i].key) = tab->slots[i];
    }
    free (tab->slots);
    tab->slots = slots;
    tab->size = size;
    return 0;
}

struct strtab *strtab_create (size_t hint)
{
    struct strtab *tab;
    size_t size = 16;

    while (size < hint * 2)
        size *= 2;
    if (!(tab = calloc (1, sizeof (*tab))))
        return NULL;
    if (resize (tab, size) < 0) {
        strtab_destroy (tab);
        return NULL;
    }
    return tab;
}

void strtab_destroy (struct strtab *tab)
{
    if (tab) {
        ERRNO_SAFE_BLOCK;
        free (tab->slots);
        free (tab);
    }
}

int strtab_insert (struct strtab *tab, const char *key, int value)
{
    struct slot *slot;

    if ((tab->count + 1) * 2 > tab->size && resize (tab, tab->size * 2) < 0)
        return -1;
    slot = find_slot (tab->slots, tab->size, key);
    if (slot->key) {
        errno = EEXIST;
        return -1;
    }
    slot->key = key;
    slot->value = value;
    tab->count++;
    return 0;
}

int strtab_find (const struct strtab *tab, const char *key)
{
    const struct slot *slot = find_slot (tab->slots, tab->size, key);

    if (!slot->key) {
        errno = ENOENT;
        return -1;
    }
    return slot->value;
}

/* SPDX-License-Identifier: LGPL-3.0-only */
/* aux.c - see aux.h */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "aux.h"

struct aux_item {
    struct aux_item *next;
    void *value;
    aux_free_f free_fn;
    bool named;
    char name[];
};

static struct aux_item **find_name (struct aux_item **list, const char *name)
{
    while (*list && !((*list)->named && !strcmp ((*list)->name, name)))
        list = &(*list)->next;
    return list;
}

/* Unlink before the destructor runs: it may look at the list. */
static void unlink_item (struct aux_item **slot)
{
    struct aux_item *item = *slot;

    if (item) {
        ERRNO_SAFE_BLOCK;
        *slot = item->next;
        if (item->free_fn)
            item->free_fn (item->value);
        free (item);
    }
}

void *aux_get (struct aux_item *list, const char *name)
{
    if (!name) {
        errno = EINVAL;
        return NULL;
    }
    list = *find_name (&list, name);
    if (!list) {
        errno = ENOENT;
        return NULL;
    }
    return list->value;
}

int aux_set (struct aux_item **list, const char *name, void *value,
             aux_free_f free_fn)
{
    struct aux_item *item = NULL;

    if (!list || (!name && (!value || !free_fn)) || (!value && free_fn)) {
        errno = EINVAL;
        return -1;
    }
    if (value) {
        size_t size = name ? strlen (name) + 1 : 0;
        if (!(item = malloc (sizeof (*item) + size)))
            return -1;
        item->value = value;
        item->free_fn = free_fn;
        item->named = name != NULL;
        if (name)
            memcpy (item->name, name, size);
    }
    if (name)
        unlink_item (find_name (list, name));
    if (item) {
        item->next = *list;
        *list = item;
    }
    return 0;
}

void aux_destroy (struct aux_item **list)
{
    while (list && *list)
        unlink_item (list);
}

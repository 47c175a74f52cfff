/* SPDX-License-Identifier: LGPL-3.0-only */
/* aux.h - a small list of (name, value, destructor), hung on an object.
 * NULL is the empty list.  Later entries are destroyed first.
 */
#ifndef SOLO_AUX_H
#define SOLO_AUX_H

struct aux_item;
typedef void (*aux_free_f) (void *value);

/* The value, or NULL: EINVAL (no name), ENOENT. */
void *aux_get (struct aux_item *list, const char *name);

/* Replaces (and destroys) an older value of that name; value NULL removes.
 * Without a name the value just lives as long as the list.
 */
int aux_set (struct aux_item **list, const char *name, void *value,
             aux_free_f free_fn);
void aux_destroy (struct aux_item **list);

#endif

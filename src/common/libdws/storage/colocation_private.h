/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: the keys of exclusive colocation that sets have. See colocation.h.
 */

#ifndef LIBDWS_COLOCATION_PRIVATE_H
#define LIBDWS_COLOCATION_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#include "libdws/util/error.h"
#include "allocset_private.h"
#include "layout_private.h"

/* The key of that number, NULL if there are fewer.
 */
const char *colocation_key (const struct alloc_set *set, size_t i);

/* {LABEL: [KEY, ...]} for the sets of a breakdown that have keys, a new reference.
 * Returns NULL if there is no memory.
 */
json_t *colocation_encode (const struct breakdown *b);

/* Fill in the keys that others hold on the rabbits of 'lay', with 'lasting' only those
 * that they may hold for ever. 'rivals' is as in allocation.h; entries of Servers that
 * are in 'bl' itself do not count. Fails with ENOMEM.
 */
int colocation_fill (struct layout *lay,
                     const struct dws_breakdowns *bl,
                     json_t *rivals,
                     bool lasting,
                     dws_error_t *error);

#endif /* !LIBDWS_COLOCATION_PRIVATE_H */

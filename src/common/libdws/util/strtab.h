/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: a map from strings to small numbers, for host names by the ten
 * thousand. Keys are borrowed and must outlive the table.
 */

#ifndef LIBDWS_STRTAB_H
#define LIBDWS_STRTAB_H

#include <stddef.h>

struct strtab;

/* 'hint' is the number of keys to expect; the table grows as needed.
 */
struct strtab *strtab_create (size_t hint);
void strtab_destroy (struct strtab *tab);

/* Add 'key' with 'value' >= 0. Fails with EEXIST or ENOMEM.
 */
int strtab_insert (struct strtab *tab, const char *key, int value);

/* The value of 'key', or -1 with errno ENOENT.
 */
int strtab_find (const struct strtab *tab, const char *key);

#endif /* !LIBDWS_STRTAB_H */

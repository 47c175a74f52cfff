/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The sizes of directives: a whole number and a unit.
 */

#ifndef LIBDWS_CAPACITY_H
#define LIBDWS_CAPACITY_H

#include <stddef.h>
#include <stdint.h>

/* The units, for messages.
 */
#define DWS_CAPACITY_UNITS "KiB, KB, MiB, MB, GiB, GB, TiB, TB"

/* Read a size such as "10GiB" as bytes. Fails with EINVAL (not a size) or
 * ERANGE (more than can be counted).
 */
int dws_capacity_parse (const char *s, int64_t *bytes);

/* The same for people, in the unit in which it is a short whole number if there is
 * one: sizes that differ, and were written by people, do not read the same.
 */
#define DWS_CAPACITY_TEXT_SIZE 32
const char *dws_capacity_text (int64_t bytes,
                               char buf[DWS_CAPACITY_TEXT_SIZE]);

/* A sum for people, to four digits.
 */
const char *dws_capacity_rough (int64_t bytes,
                                char buf[DWS_CAPACITY_TEXT_SIZE]);

/* The unit that a word stands for, perhaps without its "iB" or "B", or NULL.
 */
const char *dws_capacity_unit (const char *word);

/* A guess at the size that was meant by a text that is no size, as "20T" or "1.5TiB".
 * Returns buf, or NULL.
 */
#define DWS_CAPACITY_GUESS_SIZE 40
const char *dws_capacity_guess (const char *value, char buf[DWS_CAPACITY_GUESS_SIZE]);

#endif /* !LIBDWS_CAPACITY_H */

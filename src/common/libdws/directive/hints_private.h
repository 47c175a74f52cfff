/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: what a person meant by words that no directive has. Each function writes
 * to 'buf', which has HINT_SIZE bytes, and returns it, or returns NULL if the words
 * are none that it knows.
 */

#ifndef LIBDWS_HINTS_PRIVATE_H
#define LIBDWS_HINTS_PRIVATE_H

#include <stddef.h>

#include "grammar_private.h"

#define HINT_SIZE 320

/* The fault of argument 'i', and what to write instead: quotation marks, ';', a blank
 * before a unit, keys of DataWarp.
 */
const char *hint_arg (const struct dws_directive *dir, size_t i, char *buf);

/* What to write instead of a command: those of DataWarp, words that a comma or nothing
 * separates from it.
 */
const char *hint_command (const char *command, char *buf);

/* What to write instead of a value of 'type', 'capacity' and 'name'.
 */
const char *hint_type (const char *value, char *buf);
const char *hint_capacity (const char *key, const char *value, char *buf);
const char *hint_name (const char *key, const char *value, char *buf);

#endif /* !LIBDWS_HINTS_PRIVATE_H */

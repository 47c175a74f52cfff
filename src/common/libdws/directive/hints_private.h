/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: guesses at the meaning of words that no directive has. Each function writes
 * to 'buf', which has HINT_SIZE bytes, and returns it, or returns NULL for words that
 * it does not know.
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

/* A hint for an unknown command: one of DataWarp, or words that a comma or nothing
 * separates from the command.
 */
const char *hint_command (const char *command, char *buf);

/* Hints for malformed values of 'type', 'capacity' and 'name'.
 */
const char *hint_type (const char *value, char *buf);
const char *hint_capacity (const char *key, const char *value, char *buf);
const char *hint_name (const char *key, const char *value, char *buf);

#endif /* !LIBDWS_HINTS_PRIVATE_H */

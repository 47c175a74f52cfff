/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * A walk through JSON text, for jsonscan.c and what takes parts out of it.
 */

#ifndef LIBDWS_JSONSCAN_PRIVATE_H
#define LIBDWS_JSONSCAN_PRIVATE_H

#include "jsonscan.h"

/* A place among the members of an object, or the entries of an array.
 */
struct place {
    const char *s;
    const char *end;            // of the text
    char close;
    bool begun;
};

/* Begin with the object or array at 's'.
 */
static inline void enter (struct place *place, const char *s, const char *end)
{
    *place = (struct place){ s + 1, end, *s == '{' ? '}' : ']', false };
}

/* Go on to the value of the next one. Returns 1, 0 after the last one, or -1. In an
 * array there is no key.
 */
int advance (struct place *place, struct dws_text *key);

/* Returns what comes after the value at 's', or NULL. It is not checked beyond its
 * quotes and brackets.
 */
const char *skip_value (const char *s, const char *end);

static inline bool is_nested (const char *s)
{
    return *s == '{' || *s == '[';
}

static inline struct dws_text between (const char *s, const char *end)
{
    return (struct dws_text){ s, end - s };
}

#endif /* !LIBDWS_JSONSCAN_PRIVATE_H */

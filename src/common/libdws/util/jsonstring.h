/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The strings of JSON, as all that reads its text here passes over them.
 */

#ifndef LIBDWS_JSONSTRING_H
#define LIBDWS_JSONSTRING_H

#include <stdint.h>
#include <string.h>

/* Of eight characters, is one no plain ASCII: a quote, a backslash, a control
 * character or negative? What is subtracted borrows from no character before the first
 * one of these.
 */
static inline int dws_string_any_odd (const char *s)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t x;

    memcpy (&x, s, sizeof (x));
    return ((x | (x - ' ' * ones) | ((x ^ '"' * ones) - ones)
             | ((x ^ '\\' * ones) - ones)) & 0x80 * ones) != 0;
}

/* Pass over plain ASCII, which stands for itself.
 */
static inline const char *dws_string_plain (const char *s, const char *end)
{
    while (end - s >= 8 && !dws_string_any_odd (s))
        s += 8;
    while (s < end && (signed char)*s >= ' ' && *s != '"' && *s != '\\')
        s++;
    return s;
}

/* Returns what comes after the string whose rest begins at 's', or NULL. It is not
 * checked.
 */
static inline const char *dws_string_end (const char *s, const char *end)
{
    for (s = dws_string_plain (s, end); s < end && *s != '"';
         s = dws_string_plain (s, end))
        s += *s == '\\' && end - s > 1 ? 2 : 1;
    return s < end ? s + 1 : NULL;
}

#endif /* !LIBDWS_JSONSTRING_H */

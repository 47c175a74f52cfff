/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the unit tests of libdws share. JSON is written with ' for ", so that
 * it can stand in C.
 */

#ifndef LIBDWS_TEST_UTIL_H
#define LIBDWS_TEST_UTIL_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "libdws/directive/directive.h"
#include "libdws/storage/bytes.h"

/* Decode, or fail the test. NULL gives NULL.
 */
static inline json_t *J (const char *text)
{
    json_error_t error;
    json_t *o;
    char *copy;

    if (!text)
        return NULL;
    copy = strdup (text);
    assert_non_null (copy);
    for (char *s = copy; *s; s++) {
        if (*s == '\'')
            *s = '"';
    }
    o = json_loads (copy, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (!o)
        fail_msg ("%s: %s", error.text, copy);
    free (copy);
    return o;
}

/* The directives of an array of texts.
 */
static inline struct dws_directives *D (const char *text)
{
    json_t *texts = J (text);
    struct dws_directives *dirs = dws_directives_read (texts);

    assert_non_null (dirs);
    json_decref (texts);
    return dirs;
}

/* Compare, showing both sides where they differ. Takes neither.
 */
static inline void assert_json (json_t *have, const char *want)
{
    json_t *expected = J (want);

    if (!json_equal (have, expected)) {
        char *a = json_dumps (have, JSON_ENCODE_ANY | JSON_SORT_KEYS);
        char *b = json_dumps (expected, JSON_ENCODE_ANY | JSON_SORT_KEYS);

        fail_msg ("\n have: %s\n want: %s", a ? a : "(null)", b);
    }
    json_decref (expected);
}

/* The map of an object, or NULL: the caller clears it.
 */
static inline struct dws_bytes BYTES (const char *text)
{
    struct dws_bytes map = { 0 };
    json_t *o = J (text);

    dws_bytes_decode (&map, o);
    assert_false (map.lost);
    json_decref (o);
    return map;
}

/* Takes no map.
 */
static inline void assert_bytes (const struct dws_bytes *map, const char *want)
{
    json_t *o = dws_bytes_encode (map);

    assert_json (o, want);
    json_decref (o);
}

static inline void assert_contains (const char *text, const char *part)
{
    if (!strstr (text, part))
        fail_msg ("'%s' is not in '%s'", part, text);
}

#endif /* !LIBDWS_TEST_UTIL_H */

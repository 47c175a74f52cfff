/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See jsonwrite.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "jsonwrite.h"

#define SIZE_MIN 512

struct output {
    char *s;
    size_t len;
    size_t size;
};

static int put_value (struct output *out, const json_t *value);

static int put (struct output *out, const char *s, size_t len)
{
    if (len > out->size - out->len) {
        size_t size = 2 * (out->len + len) + SIZE_MIN;
        char *larger = realloc (out->s, size);

        if (!larger)
            return -1;
        out->s = larger;
        out->size = size;
    }
    memcpy (out->s + out->len, s, len);
    out->len += len;
    return 0;
}

/* What is not plain.
 */
static int put_dump (struct output *out, const json_t *value)
{
    char *text = json_dumps (value, JSON_COMPACT | JSON_ENCODE_ANY);
    int rc;

    if (!text) {
        errno = value ? ENOMEM : EINVAL;
        return -1;
    }
    rc = put (out, text, strlen (text));
    ERRNO_SAFE (free (text));
    return rc;
}

static int put_escaped (struct output *out, const char *s, size_t len)
{
    json_t *value = json_stringn (s, len);
    int rc;

    if (!value) {
        errno = ENOMEM;
        return -1;
    }
    rc = put_dump (out, value);
    ERRNO_SAFE (json_decref (value));
    return rc;
}

static int put_string (struct output *out, const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)s[i] < ' ' || s[i] == '"' || s[i] == '\\')
            return put_escaped (out, s, len);
    }
    if (put (out, "\"", 1) < 0 || put (out, s, len) < 0)
        return -1;
    return put (out, "\"", 1);
}

static int put_integer (struct output *out, json_int_t i)
{
    char buf[32];

    return put (out, buf, snprintf (buf, sizeof (buf),
                                    "%" JSON_INTEGER_FORMAT, i));
}

static int put_array (struct output *out, const json_t *array)
{
    for (size_t i = 0; i < json_array_size (array); i++) {
        if (put (out, i == 0 ? "[" : ",", 1) < 0
            || put_value (out, json_array_get (array, i)) < 0)
            return -1;
    }
    return json_array_size (array) == 0 ? put (out, "[]", 2)
                                        : put (out, "]", 1);
}

static int put_object (struct output *out, json_t *object)
{
    const char *before = "{";
    const char *key;
    json_t *value;

    json_object_foreach (object, key, value) {
        if (put (out, before, 1) < 0
            || put_string (out, key, strlen (key)) < 0
            || put (out, ":", 1) < 0
            || put_value (out, value) < 0)
            return -1;
        before = ",";
    }
    return json_object_size (object) == 0 ? put (out, "{}", 2)
                                          : put (out, "}", 1);
}

static int put_value (struct output *out, const json_t *value)
{
    switch (value ? json_typeof (value) : JSON_NULL) {
        case JSON_OBJECT:
            return put_object (out, (json_t *)value);
        case JSON_ARRAY:
            return put_array (out, value);
        case JSON_STRING:
            return put_string (out, json_string_value (value),
                               json_string_length (value));
        case JSON_INTEGER:
            return put_integer (out, json_integer_value (value));
        default:
            return put_dump (out, value);
    }
}

char *dws_json_write (const json_t *value)
{
    struct output out = { 0 };
    char *exact;

    if (put_value (&out, value) < 0 || put (&out, "", 1) < 0
        || !(exact = realloc (out.s, out.len))) {
        ERRNO_SAFE (free (out.s));
        return NULL;
    }
    return exact;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See jsonparse.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "jsonparse.h"
#include "jsonstring.h"

/* As jansson's own parser has it.
 */
#define DEPTH_MAX 2048

/* No longer integer is read here: they all fit.
 */
#define DIGITS_MAX 18

/* A longer key goes to json_loadb().
 */
#define KEY_SIZE 128

struct input {
    const char *s;
    const char *end;
    int depth;
    char key[KEY_SIZE];
};

static json_t *take_value (struct input *in);

static json_t *invalid (void)
{
    errno = EINVAL;
    return NULL;
}

static json_t *made (json_t *value)
{
    if (!value)
        errno = ENOMEM;
    return value;
}

static bool is_at (const struct input *in, char c)
{
    return in->s < in->end && *in->s == c;
}

static void skip_space (struct input *in)
{
    while (in->s < in->end && (*in->s == ' ' || *in->s == '\n'
                               || *in->s == '\t' || *in->s == '\r'))
        in->s++;
}

/* Scalars
 */

static json_t *load (const char *s, size_t len)
{
    json_error_t error;
    json_t *value;

    if (!(value = json_loadb (s, len, JSON_DECODE_ANY | JSON_ALLOW_NUL,
                              &error)))
        errno = json_error_code (&error) == json_error_out_of_memory
                ? ENOMEM : EINVAL;
    return value;
}

/* Go past a string. If it is plain, '*plain' is its text without quotes, else NULL.
 * Returns all of it, or NULL.
 */
static const char *pass_string (struct input *in, const char **plain,
                                size_t *len)
{
    const char *begin = in->s;
    const char *end = dws_string_plain (begin + 1, in->end);

    *plain = NULL;
    if (end < in->end && *end == '"') {
        *plain = begin + 1;
        *len = end - *plain;
        in->s = end + 1;
    }
    else if (!(in->s = dws_string_end (end, in->end)))
        return NULL;
    return begin;
}

static json_t *take_string (struct input *in)
{
    const char *plain;
    size_t len;
    const char *begin = pass_string (in, &plain, &len);

    if (!begin)
        return invalid ();
    return plain ? made (json_stringn_nocheck (plain, len))
                 : load (begin, in->s - begin);
}

static bool is_digit (char c)
{
    return c >= '0' && c <= '9';
}

static json_t *take_number (const char *s, size_t len)
{
    const char *digits = *s == '-' ? s + 1 : s;
    const char *end = s + len;
    json_int_t value = 0;

    if (digits == end || end - digits > DIGITS_MAX
        || (*digits == '0' && end - digits > 1))
        return load (s, len);
    for (const char *p = digits; p < end; p++) {
        if (!is_digit (*p))
            return load (s, len);
        value = 10 * value + (*p - '0');
    }
    return made (json_integer (*s == '-' ? -value : value));
}

static bool says (const char *s, size_t len, const char *word)
{
    return len == strlen (word) && !memcmp (s, word, len);
}

/* A number or a name.
 */
static json_t *take_word (struct input *in)
{
    const char *s = in->s;
    size_t len;

    while (in->s < in->end && !strchr (",:]} \n\t\r\"[{", *in->s))
        in->s++;
    if ((len = in->s - s) == 0)
        return invalid ();
    if (says (s, len, "true"))
        return json_true ();
    if (says (s, len, "false"))
        return json_false ();
    if (says (s, len, "null"))
        return json_null ();
    return take_number (s, len);
}

/* Objects and arrays
 */

/* Go to the next entry, or past the end. Returns 1, 0 at the end, or -1 with EINVAL.
 */
static int go_on (struct input *in, char close, bool first)
{
    skip_space (in);
    if (is_at (in, close)) {
        in->s++;
        return 0;
    }
    if (first)
        return 1;
    if (!is_at (in, ',')) {
        errno = EINVAL;
        return -1;
    }
    in->s++;
    skip_space (in);
    return 1;
}

static int take_entry (struct input *in, json_t *array)
{
    json_t *value = take_value (in);

    if (!value)
        return -1;
    if (json_array_append_new (array, value) < 0) {
        errno = ENOMEM;
        return -1;
    }
    return 0;
}

/* A key that is not plain, or long. The same as set_member(). No key can have a NUL.
 */
static int set_odd (json_t *object, const char *key, size_t len, json_t *value)
{
    json_t *name = value ? load (key, len) : NULL;
    const char *s = json_string_value (name);
    int rc = -1;

    if (s && strlen (s) != json_string_length (name))
        errno = EINVAL;
    else if (s && (rc = json_object_set (object, s, value)) < 0)
        errno = ENOMEM;
    ERRNO_SAFE (json_decref (name));
    ERRNO_SAFE (json_decref (value));
    return rc;
}

static int set_member (struct input *in, json_t *object, const char *key,
                       size_t len, json_t *value)
{
    if (!value)
        return -1;
    memcpy (in->key, key, len);
    in->key[len] = '\0';
    if (json_object_set_new_nocheck (object, in->key, value) < 0) {
        errno = ENOMEM;
        return -1;
    }
    return 0;
}

static int take_member (struct input *in, json_t *object)
{
    const char *begin;
    const char *after;
    const char *plain;
    size_t len;
    json_t *value;

    if (!is_at (in, '"') || !(begin = pass_string (in, &plain, &len))) {
        errno = EINVAL;
        return -1;
    }
    after = in->s;
    skip_space (in);
    if (!is_at (in, ':')) {
        errno = EINVAL;
        return -1;
    }
    in->s++;
    skip_space (in);
    value = take_value (in);
    return plain && len < KEY_SIZE
           ? set_member (in, object, plain, len, value)
           : set_odd (object, begin, after - begin, value);
}

/* Fill 'container', which is new (NULL: out of memory), and go past its end.
 */
static json_t *take_all (struct input *in, json_t *container, char close,
                         int (*take_one)(struct input *in, json_t *container))
{
    bool first = true;
    int rc;

    for (; container && (rc = go_on (in, close, first)) != 0; first = false) {
        if (rc < 0 || take_one (in, container) < 0) {
            ERRNO_SAFE (json_decref (container));
            return NULL;
        }
    }
    return container;
}

static json_t *take_nested (struct input *in)
{
    bool is_object = *in->s == '{';
    json_t *value;

    if (in->depth == DEPTH_MAX)
        return invalid ();
    in->depth++;
    in->s++;
    value = is_object
            ? take_all (in, made (json_object ()), '}', take_member)
            : take_all (in, made (json_array ()), ']', take_entry);
    in->depth--;
    return value;
}

static json_t *take_value (struct input *in)
{
    if (is_at (in, '"'))
        return take_string (in);
    return is_at (in, '{') || is_at (in, '[') ? take_nested (in)
                                              : take_word (in);
}

json_t *dws_json_parse (const char *text, size_t len)
{
    struct input in = { .s = text };
    json_t *value;

    if (!text)
        return invalid ();
    in.end = text + len;
    skip_space (&in);
    if (!(value = take_value (&in)))
        return NULL;
    skip_space (&in);
    if (in.s < in.end) {
        json_decref (value);
        return invalid ();
    }
    return value;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See presets.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "directive.h"
#include "presets.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define NAME_CHARS LETTERS DIGITS "_"
#define WORD_CHARS LETTERS DIGITS "._-/:@+,"

/* The names of variables, and the values with which a preset is checked.
 */
static const struct {
    const char *name;
    const char *sample;
} builtins[] = {
    { "UID", "1000" },
    { "USER", DWS_PRESETS_USER },
    { "JOBID", "1" },
    { "QUEUE", "queue" },
    { "BANK", "bank" },
};

#define BUILTIN_COUNT (sizeof (builtins) / sizeof (builtins[0]))

static bool is_builtin (const char *name)
{
    for (size_t i = 0; i < BUILTIN_COUNT; i++) {
        if (!strcmp (builtins[i].name, name))
            return true;
    }
    return false;
}

static bool is_word (const char *s)
{
    return s && *s && s[strspn (s, WORD_CHARS)] == '\0';
}

/* A text that grows.
 */
struct text {
    char *s;
    size_t len;
};

static int append (struct text *text, const char *s, size_t len,
                   dws_error_t *error)
{
    char *longer = realloc (text->s, text->len + len + 1);

    if (!longer)
        return dws_error_nomem (error);
    memcpy (longer + text->len, s, len);
    text->s = longer;
    text->len += len;
    text->s[text->len] = '\0';
    return 0;
}

static int append_value (struct text *text, const char *name,
                         json_t *values, dws_error_t *error)
{
    json_t *value = json_object_get (values, name);
    const char *s;

    if (!value) {
        if (is_builtin (name))
            return dws_error (error, EINVAL, "$%s: the job has none", name);
        return dws_error (error, EINVAL, "$%.64s is not a variable", name);
    }
    if (!is_word ((s = json_string_value (value))))
        return dws_error (error, EINVAL, "$%s: '%.64s' is not one word of"
                          " letters, digits and ._-/:@+,", name, s ? s : "");
    return append (text, s, strlen (s), error);
}

/* Expand the variable at 's', a dollar. Returns where to go on, NULL on failure.
 */
static const char *expand_one (struct text *text, const char *s,
                               json_t *values, dws_error_t *error)
{
    bool braced = s[1] == '{';
    const char *begin = s + 1 + braced;
    size_t len = strspn (begin, NAME_CHARS);
    const char *end = begin + len + braced;
    char name[128];

    if (s[1] == '$')
        return append (text, "$", 1, error) < 0 ? NULL : s + 2;
    if (len == 0 || len >= sizeof (name) || (braced && begin[len] != '}')) {
        dws_error (error, EINVAL, "'%.20s': a '$' begins the name of a"
                   " variable, and '$$' is a dollar", s);
        return NULL;
    }
    memcpy (name, begin, len);
    name[len] = '\0';
    if (!strncmp (name, "DW_", 3)) {
        if (append (text, s, end - s, error) < 0)
            return NULL;
    }
    else if (append_value (text, name, values, error) < 0)
        return NULL;
    return end;
}

static json_t *expand_text (json_t *value, json_t *values,
                            dws_error_t *error)
{
    const char *s = json_string_value (value);
    struct text text = { 0 };
    json_t *o = NULL;

    if (!s || !strchr (s, '$'))
        return json_incref (value);
    while (s && *s) {
        size_t len = strcspn (s, "$");

        if (append (&text, s, len, error) < 0)
            s = NULL;
        else if (*(s += len) == '$')
            s = expand_one (&text, s, values, error);
    }
    if (s && !(o = json_string (text.s)))
        dws_error_nomem (error);
    ERRNO_SAFE (free (text.s));
    return o;
}

/* A preset is a text or an array of texts. The parser rejects anything else.
 */
static json_t *expand (json_t *preset, json_t *values, dws_error_t *error)
{
    json_t *array;
    json_t *entry;
    size_t i;

    if (!json_is_array (preset))
        return expand_text (preset, values, error);
    if (!(array = json_array ())) {
        dws_error_nomem (error);
        return NULL;
    }
    json_array_foreach (preset, i, entry) {
        json_t *o = expand_text (entry, values, error);

        if (!o || json_array_append_new (array, o) < 0) {
            if (o)
                dws_error_nomem (error);
            ERRNO_SAFE (json_decref (array));
            return NULL;
        }
    }
    return array;
}

int dws_presets_check (json_t *presets, dws_error_t *error)
{
    json_t *samples = json_object ();
    const char *name;
    json_t *value;
    int rc = 0;

    for (size_t i = 0; i < BUILTIN_COUNT; i++) {
        if (json_object_set_new (samples, builtins[i].name,
                                 json_string (builtins[i].sample)) < 0)
            rc = dws_error_nomem (error);
    }
    json_object_foreach (presets, name, value) {
        struct dws_directives *dirs = NULL;
        dws_error_t detail = { "" };
        json_t *text;

        if (rc < 0)
            break;
        if (!(text = expand (value, samples, &detail))
            || !(dirs = dws_directives_parse (text, NULL, NULL, &detail)))
            rc = dws_error (error, errno, "%.64s: %s", name, detail.text);
        ERRNO_SAFE (dws_directives_destroy (dirs));
        ERRNO_SAFE (json_decref (text));
    }
    ERRNO_SAFE (json_decref (samples));
    return rc;
}

json_t *dws_presets_bind (json_t *presets, json_t *values,
                          dws_error_t *error)
{
    json_t *bound;
    const char *name;
    json_t *value;

    if (!presets)
        return NULL;
    if (!(bound = json_object ()))
        goto nomem;
    json_object_foreach (presets, name, value) {
        dws_error_t detail = { "" };
        json_t *text;

        if (!(text = expand (value, values, &detail))
            && errno == EINVAL)
            text = json_pack ("{s:s}", "error", detail.text);
        if (!text || json_object_set_new (bound, name, text) < 0)
            goto nomem;
    }
    return bound;
nomem:
    json_decref (bound);
    dws_error_nomem (error);
    return NULL;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See bounds.h.
 */

#include <errno.h>
#include <string.h>

#include "bounds.h"
#include "lists.h"

/* The plugin joins constraints of its own to those of the user: two operators, and a
 * list of nodes that may name each of them.
 */
#define OUR_DEPTH 8
#define OUR_VALUES 64
#define OUR_TEXT DWS_MAX_DIRECTIVE_BYTES

struct tally {
    const char *what;
    bool ours;
    size_t values;
    size_t text;
    size_t hosts;
    dws_error_t *error;
};

static int refuse (const struct tally *t, size_t limit, const char *unit)
{
    return dws_error (t->error, EINVAL, "%s: more than %zu %s", t->what, limit,
                      unit);
}

/* An empty string counts as well: a list of hosts or ranks may have any number of them.
 */
static int add_text (struct tally *t, const char *s)
{
    size_t limit = t->ours ? OUR_TEXT : DWS_MAX_TEXT;

    t->text += *s ? strlen (s) : 1;
    return t->text > limit ? refuse (t, limit, "bytes") : 0;
}

static int add_value (struct tally *t)
{
    size_t limit = DWS_MAX_VALUES + (t->ours ? OUR_VALUES : 0);

    return ++t->values > limit ? refuse (t, limit, "values") : 0;
}

static int add_hosts (struct tally *t, const char *s)
{
    size_t limit = DWS_MAX_HOSTS * (t->ours ? 2 : 1);
    size_t count = dws_hostlist_named (s);

    t->hosts += count;
    return t->hosts > limit || count > DWS_MAX_HOSTS
        ? refuse (t, limit, "hosts") : 0;
}

/* 'key' is the key of the value, or of the array that holds the value.
 */
static int walk (struct tally *t, const char *key, json_t *o, int depth)
{
    const char *s = json_string_value (o);
    const char *name;
    json_t *value;
    size_t i;

    if (depth > DWS_MAX_DEPTH + (t->ours ? OUR_DEPTH : 0))
        return dws_error (t->error, EINVAL, "%s: nested too deeply", t->what);
    if (s) {
        if (add_text (t, s) < 0)
            return -1;
        if (strcmp (key, "hostlist") == 0)
            return add_hosts (t, s);
        return strcmp (key, "ranks") == 0 ? 0 : add_value (t);
    }
    if (add_value (t) < 0)
        return -1;
    json_array_foreach (o, i, value) {
        if (walk (t, key, value, depth + 1) < 0)
            return -1;
    }
    json_object_foreach (o, name, value) {
        if (add_text (t, name) < 0 || walk (t, name, value, depth + 1) < 0)
            return -1;
    }
    return 0;
}

int dws_bounds_check (json_t *o, const char *what, bool ours,
                      dws_error_t *error)
{
    struct tally t = { .what = what, .ours = ours, .error = error };

    return walk (&t, "", o, 0);
}

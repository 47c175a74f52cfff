/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See list_private.h, and the functions of directive.h that read a list.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/jsonmake.h"
#include "libutil/errno_safe.h"
#include "list_private.h"

/* DWS separates words by any of these. A user's text has blanks and tabs only.
 */
#define BLANKS " \t\n"

struct dws_directives *list_create (void)
{
    return calloc (1, sizeof (struct dws_directives));
}

void dws_directives_destroy (struct dws_directives *dirs)
{
    if (dirs) {
        ERRNO_SAFE_BLOCK;
        for (size_t i = 0; i < dirs->count; i++) {
            struct dws_directive *dir = &dirs->list[i];

            for (size_t j = 0; j < dir->nargs; j++) {
                free (dir->args[j].key);
                free (dir->args[j].value);
            }
            free (dir->args);
            free (dir->command);
            free (dir->text);
        }
        free (dirs->list);
        for (size_t i = 0; i < dirs->warning_count; i++)
            free (dirs->warnings[i]);
        free (dirs->warnings);
        free (dirs);
    }
}

int list_begin_directive (struct dws_directives *dirs)
{
    struct dws_directive *dir;

    if (dirs->count == dirs->alloc) {
        size_t alloc = dirs->alloc ? dirs->alloc * 2 : 4;

        if (!(dir = realloc (dirs->list, alloc * sizeof (*dir))))
            return -1;
        dirs->list = dir;
        dirs->alloc = alloc;
    }
    dir = &dirs->list[dirs->count++];
    memset (dir, 0, sizeof (*dir));
    dir->line = dirs->line;
    return 0;
}

static int append_arg (struct dws_directive *dir, const char *word, size_t len,
                       size_t line)
{
    const char *eq = memchr (word, '=', len);
    struct dws_arg *args;
    struct dws_arg *arg;

    if (!(args = realloc (dir->args, (dir->nargs + 1) * sizeof (*args))))
        return -1;
    dir->args = args;
    arg = &args[dir->nargs];
    arg->value = NULL;
    arg->line = line;
    if (!(arg->key = strndup (word, eq ? (size_t)(eq - word) : len)))
        return -1;
    if (eq && !(arg->value = strndup (eq + 1, word + len - eq - 1))) {
        ERRNO_SAFE (free (arg->key));
        return -1;
    }
    dir->nargs++;
    return 0;
}

int list_append_word (struct dws_directives *dirs, const char *word, size_t len)
{
    struct dws_directive *dir = &dirs->list[dirs->count - 1];

    if (!dir->command)
        return (dir->command = strndup (word, len)) ? 0 : -1;
    return append_arg (dir, word, len, dirs->line);
}

int list_join_words (struct dws_directive *dir)
{
    const char *command = dir->command ? dir->command : "";
    size_t size = strlen ("#DW ") + strlen (command) + 1;
    char *text;
    char *to;

    for (size_t i = 0; i < dir->nargs; i++) {
        const struct dws_arg *arg = &dir->args[i];

        size += strlen (arg->key) + strlen (arg->value ? arg->value : "") + 2;
    }
    if (!(text = malloc (size)))
        return -1;
    to = stpcpy (stpcpy (text, *command ? "#DW " : "#DW"), command);
    for (size_t i = 0; i < dir->nargs; i++) {
        const struct dws_arg *arg = &dir->args[i];

        to = stpcpy (stpcpy (to, " "), arg->key);
        if (arg->value)
            to = stpcpy (stpcpy (to, "="), arg->value);
    }
    free (dir->text);
    dir->text = text;
    return 0;
}

int list_add_warning (void *arg, const char *text)
{
    struct dws_directives *dirs = arg;
    size_t n = dirs->warning_count;
    char **list;

    if (!(list = realloc (dirs->warnings, (n + 1) * sizeof (*list))))
        return -1;
    dirs->warnings = list;
    if (!(list[n] = strdup (text)))
        return -1;
    dirs->warning_count++;
    return 0;
}

/* The words behind "#DW".
 */
static int read_words (struct dws_directives *dirs, const char *s)
{
    size_t len = strcspn (s, BLANKS);

    if (len != 3 || memcmp (s, "#DW", 3) != 0)
        return 0;
    for (s += len; *(s += strspn (s, BLANKS)); s += len) {
        len = strcspn (s, BLANKS);
        if (list_append_word (dirs, s, len) < 0)
            return -1;
    }
    return 0;
}

struct dws_directives *dws_directives_read (json_t *texts)
{
    struct dws_directives *dirs;
    json_t *value;
    size_t index;

    if (!(dirs = list_create ()))
        return NULL;
    json_array_foreach (texts, index, value) {
        const char *s = json_is_string (value) ? json_string_value (value) : "";

        if (list_begin_directive (dirs) < 0
            || !(dirs->list[index].text = strdup (s))
            || read_words (dirs, s) < 0) {
            dws_directives_destroy (dirs);
            return NULL;
        }
    }
    return dirs;
}

/* Access
 */

const char *list_arg (const struct dws_directive *dir, const char *key)
{
    for (size_t i = 0; i < dir->nargs; i++) {
        if (strcmp (dir->args[i].key, key) == 0)
            return dir->args[i].value ? dir->args[i].value : "";
    }
    return NULL;
}

size_t dws_directives_count (const struct dws_directives *dirs)
{
    return dirs ? dirs->count : 0;
}

const char *dws_directives_text (const struct dws_directives *dirs,
                                 size_t index)
{
    return index < dirs->count ? dirs->list[index].text : NULL;
}

const char *dws_directives_command (const struct dws_directives *dirs,
                                    size_t index)
{
    return index < dirs->count ? dirs->list[index].command : NULL;
}

const char *dws_directives_arg (const struct dws_directives *dirs,
                                size_t index,
                                const char *key)
{
    return index < dirs->count ? list_arg (&dirs->list[index], key) : NULL;
}

size_t dws_directives_line (const struct dws_directives *dirs, size_t index)
{
    return index < dirs->count ? dirs->list[index].line : 0;
}

const char *dws_directives_key (const struct dws_directives *dirs,
                                size_t index,
                                size_t n)
{
    if (index >= dirs->count || n >= dirs->list[index].nargs)
        return NULL;
    return dirs->list[index].args[n].key;
}

size_t dws_directives_warning_count (const struct dws_directives *dirs)
{
    return dirs->warning_count;
}

const char *dws_directives_warning (const struct dws_directives *dirs,
                                    size_t index)
{
    return index < dirs->warning_count ? dirs->warnings[index] : NULL;
}

json_t *dws_directives_encode (const struct dws_directives *dirs)
{
    json_t *array = json_array ();

    for (size_t i = 0; i < dirs->count; i++)
        dws_json_append (&array, json_string (dirs->list[i].text));
    return array;
}

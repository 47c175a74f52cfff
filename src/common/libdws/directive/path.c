/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See path_private.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libdws/util/unseen.h"
#include "path_private.h"

#define WORD_CHARS                                                          \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
#define PATH_CHARS WORD_CHARS "._-+=@:,/"

/* What Linux takes.
 */
#define MAX_PATH_BYTES 4095
#define MAX_PART_BYTES 255

static const struct {
    const char *text;
    enum dws_variable which;
} variables[] = {
    { "$USER", DWS_VARIABLE_USER },
    { "${USER}", DWS_VARIABLE_USER },
    { "{{id}}", DWS_VARIABLE_ID },
};

/* The length of the variable that begins at 's', 0 if none does.
 */
static size_t variable_at (const char *s, enum dws_variable *which)
{
    for (size_t i = 0; i < sizeof (variables) / sizeof (variables[0]); i++) {
        size_t len = strlen (variables[i].text);

        if (!strncmp (s, variables[i].text, len)
            && !(s[1] == 'U' && strspn (s + len, WORD_CHARS "_") > 0)) {
            *which = variables[i].which;
            return len;
        }
    }
    return 0;
}

int path_variables (const char *path)
{
    enum dws_variable which;
    int found = 0;

    for (const char *s = path; *s; s++) {
        if (variable_at (s, &which))
            found |= which;
    }
    return found;
}

/* The length of the valid piece of a path at 's', 0 if there is none.
 */
static size_t piece_at (const char *s)
{
    enum dws_variable which;
    const char *end = s + strlen (s);
    size_t len;

    if (strchr (PATH_CHARS, *s))
        return 1;
    if ((unsigned char)*s < 0x80)
        return variable_at (s, &which);
    return dws_is_unseen (dws_character (s, end, &len)) ? 0 : len;
}

/* The length of the valid beginning of a path, 0 if there is none.
 */
static size_t front_of (const char *path, bool storage)
{
    static const char *const fronts[] = { "$DW_JOB_", "$DW_PERSISTENT_" };

    if (*path == '/')
        return 1;
    for (size_t i = 0; storage && i < 2; i++) {
        size_t len = strlen (fronts[i]);

        if (!strncmp (path, fronts[i], len))
            return len + strspn (path + len, WORD_CHARS "_-");
    }
    return 0;
}

/* Is a component of the path ".."?
 */
static bool leads_up (const char *path)
{
    for (const char *s = path; (s = strstr (s, "..")); s++) {
        if ((s == path || s[-1] == '/') && (s[2] == '/' || s[2] == '\0'))
            return true;
    }
    return false;
}

static size_t longest_part (const char *path)
{
    size_t longest = 0;

    while (*path) {
        size_t len = strcspn (path, "/");

        if (len > longest)
            longest = len;
        path += len + (path[len] == '/');
    }
    return longest;
}

int path_check (const char *path, bool storage, dws_error_t *error)
{
    size_t front = front_of (path, storage);
    size_t longest = longest_part (path);
    char shown[48];

    if (front == 0) {
        dws_unseen_shown (path, strcspn (path, "/"), shown, sizeof (shown));
        if (storage && !strncmp (path, "${DW_", 5))
            return dws_error (error, EINVAL, "begins with '%s': write $%.*s",
                              shown, (int)strcspn (path + 2, "}/"), path + 2);
        return dws_error (error, EINVAL, "begins with '%s'; it must %s", shown,
                          storage ? "begin with '/', '$DW_JOB_' or"
                                    " '$DW_PERSISTENT_'"
                                  : "be an absolute path");
    }
    for (const char *s = path + front; *s; ) {
        size_t len = piece_at (s);

        if (len == 0) {
            (void)dws_character (s, s + strlen (s), &len);
            dws_unseen_shown (s, len, shown, sizeof (shown));
            return dws_error (error, EINVAL, "has '%s' in it; a path is of"
                              " letters, digits, ._-+=@:, and characters beyond"
                              " ASCII, with $USER and {{id}} in it", shown);
        }
        s += len;
    }
    if (leads_up (path))
        return dws_error (error, EINVAL, "has '..' in it; write the path without");
    if (longest > MAX_PART_BYTES)
        return dws_error (error, EINVAL, "has a part of %zu bytes, there can be"
                          " at most %d", longest, MAX_PART_BYTES);
    if (strlen (path) > MAX_PATH_BYTES)
        return dws_error (error, EINVAL, "has %zu bytes, there can be at most"
                          " %d", strlen (path), MAX_PATH_BYTES);
    return 0;
}

/* The value of the variable, or NULL.
 */
static const char *value_of (enum dws_variable which, const char *user,
                             const char *id)
{
    return which == DWS_VARIABLE_USER ? user : id;
}

char *path_fill (const char *path, const char *user, const char *id,
                 dws_error_t *error)
{
    size_t most = strlen (user ? user : "") + strlen (id ? id : "") + 1;
    char *filled = malloc (strlen (path) * most + 1);
    char *to = filled;

    if (!filled) {
        dws_error_nomem (error);
        return NULL;
    }
    for (const char *s = path; *s; ) {
        enum dws_variable which;
        size_t len = variable_at (s, &which);
        const char *value = len > 0 ? value_of (which, user, id) : NULL;

        if (value && (!*value || strpbrk (value, "/${"))) {
            dws_error (error, EINVAL, "has %.*s in it, and '%.64s' is no part of"
                       " a path", (int)len, s, value);
            ERRNO_SAFE (free (filled));
            return NULL;
        }
        if (value)
            to = stpcpy (to, value);
        else
            *to++ = *s;
        s += value ? len : 1;
    }
    *to = '\0';
    if (path_check (filled, *filled == '$', error) < 0) {
        ERRNO_SAFE (free (filled));
        return NULL;
    }
    return filled;
}

const char *path_word_fault (const char *word, bool value, char *buf,
                             size_t size)
{
    size_t len = strspn (word, value ? PATH_CHARS : WORD_CHARS "._-");
    size_t n;

    if (value && leads_up (word))
        return strcpy (buf, "..");
    for (word += len; *word; word += n) {
        uint32_t c = dws_character (word, word + strlen (word), &n);

        if (value && c >= 0x80 && !dws_is_unseen (c)) {
            n += strspn (word + n, PATH_CHARS);
            continue;
        }
        dws_unseen_shown (word, n, buf, size);
        return buf;
    }
    return NULL;
}

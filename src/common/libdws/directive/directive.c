/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Parses #DW text into words and directives, which grammar.c and structure.c check.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libdws/util/bounds.h"
#include "libdws/util/spelling.h"
#include "libdws/util/unseen.h"
#include "libutil/errno_safe.h"
#include "directive.h"
#include "grammar_private.h"
#include "list_private.h"
#include "structure_private.h"

/* Where the parser stands within one string of 'dw' or of a preset.
 */
struct parser {
    struct dws_directives *dirs;
    json_t *presets;      // NULL within a preset: they do not nest
    const char *preset;   // name of the preset being read, or NULL
    size_t limit;         // of directives
    bool open;            // the last directive may still grow
    bool continued;       // the last line ended in a backslash
    bool commented;       // there was a comment
    dws_error_t *error;
};

const struct dws_directive_limits dws_directive_limits_default = {
    .bytes = DWS_DIRECTIVE_BYTES,
    .count = DWS_DIRECTIVE_COUNT,
};

const struct dws_directive_limits dws_directive_limits_max = {
    .bytes = DWS_MAX_DIRECTIVE_BYTES,
    .count = DWS_MAX_DIRECTIVE_COUNT,
};

static int parse_text (struct parser *parent,
                       json_t *presets,
                       const char *preset,
                       json_t *value);

/* DWS separates words by other white space, too: check_unseen() rejects it.
 */
static bool is_blank (char c)
{
    return c == ' ' || c == '\t';
}

static size_t next_word (const char **cursor, const char *end)
{
    const char *s = *cursor;
    size_t len = 0;

    while (s < end && is_blank (*s))
        s++;
    while (s + len < end && !is_blank (s[len]))
        len++;
    *cursor = s;
    return len;
}

/* Report a fault in the text. Presets are the admin's, so name the preset at fault.
 */
#define FAULT(p, fmt, ...)                                                  \
    FAULT_AT (p, (p)->dirs->count ? (p)->dirs->count : 1, fmt, ##__VA_ARGS__)

/* The same for the n-th directive, from 1.
 */
#define FAULT_AT(p, n, fmt, ...)                                            \
    dws_error ((p)->error,                                                  \
               EINVAL,                                                      \
               "#DW directive %zu%s%s%s: " fmt,                             \
               n,                                                           \
               (p)->preset ? " (preset '" : "",                             \
               (p)->preset ? (p)->preset : "",                              \
               (p)->preset ? "')" : "",                                     \
               ##__VA_ARGS__)

/* Words must have no character that a person does not see, or that separates words for
 * DWS.
 */
static int check_unseen (struct parser *p, const char *s, const char *end)
{
    char shown[96];
    char name[48];
    size_t len;

    for (const char *at = s; at < end; at += len) {
        uint32_t c = dws_character (at, end, &len);

        if (is_blank (*at))
            s = at + 1;
        if (is_blank (*at) || !dws_is_unseen (c))
            continue;
        while (at < end && !is_blank (*at))
            at++;
        dws_unseen_shown (s, at - s, shown, sizeof (shown));
        dws_unseen_name (c, name, sizeof (name));
        return FAULT_AT (p,
                         p->dirs->count + (p->dirs->count == 0
                                           || strstr (shown, "#DW")),
                         "'%s' has %s in it; only blanks and tabs separate the"
                         " words of a directive: %s",
                         shown,
                         name,
                         dws_is_hidden (c) ? "delete it" : "write a blank for it");
    }
    return 0;
}

/* A comment may have any characters but those that end a line for some programs: the text
 * after one would look like a directive, but is not read.
 */
static int check_comment (struct parser *p, const char *s, const char *end)
{
    char name[48];
    size_t len;

    for (const char *at = s; at < end; at += len) {
        uint32_t c = dws_character (at, end, &len);

        if (dws_ends_line (c)) {
            dws_unseen_name (c, name, sizeof (name));
            return FAULT (p, "the comment behind it has %s in it, which ends no"
                          " line here", name);
        }
    }
    return 0;
}

/* Words up to 'end' are those of one line, from the first that is neither
 * blank nor the name of a preset.
 */
static int parse_words (struct parser *p, const char *s, const char *end)
{
    size_t len;

    while ((len = next_word (&s, end)) > 0) {
        int width = len > 60 ? 60 : (int)len;

        if (check_unseen (p, s, s + len) < 0)
            return -1;
        if (len == 3 && memcmp (s, "#DW", 3) == 0) {
            if (p->continued)
                return FAULT (p,
                              "ends in '\\', but what follows is a new #DW");
            if (p->dirs->count >= p->limit)
                return dws_error (p->error,
                                  EINVAL,
                                  "there are more than %zu directives, which"
                                  " is the limit",
                                  p->limit);
            if (list_begin_directive (p->dirs) < 0)
                return dws_error_nomem (p->error);
            p->open = true;
        }
        else if (len >= 3 && strncasecmp (s, "#dw", 3) == 0) {
            return FAULT (p,
                          "'%.*s' is not a word, did you mean '#DW'?",
                          width,
                          s);
        }
        else if (len == 3 && strncasecmp (s, "#BB", 3) == 0) {
            return FAULT (p,
                          "'%.3s' is of Slurm and is not read here: a directive"
                          " begins with '#DW'",
                          s);
        }
        else if (*s == '#') {
            p->commented = true;
            return check_comment (p, s, end);
        }
        else if (memchr (s, '\\', len)) {
            const char *at = memchr (s, '\\', len);
            bool newline = at + 1 < s + len && at[1] == 'n';

            return FAULT (p,
                          "'%.*s': a '\\' can only end a line, %s",
                          width,
                          s,
                          newline ? "and '\\n' is no new line: write one (in bash"
                                    " $'...\\n...'), or --dw once for each directive"
                                  : "and only once");
        }
        else if (p->dirs->list[p->dirs->count - 1].nargs >= DWS_MAX_WORDS) {
            return FAULT (p, "has more than %d words", DWS_MAX_WORDS);
        }
        else if (list_append_word (p->dirs, s, len) < 0) {
            return dws_error_nomem (p->error);
        }
        p->continued = false;
        s += len;
    }
    return 0;
}

static int list_presets (struct parser *p, const char *word, int width)
{
    char names[128] = "";
    const char *similar = NULL;
    const char *name;
    json_t *value;

    json_object_foreach (p->presets, name, value) {
        size_t used = strlen (names);
        char given[64];

        if (used + strlen (name) + 3 < sizeof (names)) {
            strcat (names, used ? ", " : "");
            strcat (names, name);
        }
        snprintf (given, sizeof (given), "%.*s", width, word);
        if (!similar && dws_is_similar (given, name))
            similar = name;
    }
    if (similar)
        return FAULT (p,
                      "'%.*s' is not a preset, did you mean '%s'?",
                      width,
                      word,
                      similar);
    if (memmem (word, width, "#DW", 3))
        return FAULT (p,
                      "'%.*s' does not begin with '#DW': leave out what is before"
                      " that",
                      width,
                      word);
    return FAULT (p,
                  "'%.*s' is neither a directive (\"#DW ...\") nor a preset"
                  " (%s%s)",
                  width,
                  word,
                  *names ? "known: " : "none are configured",
                  names);
}

static int parse_preset (struct parser *p, const char *s, size_t len)
{
    char *name;
    json_t *value;
    int rc = -1;

    if (check_unseen (p, s, s + len) < 0)
        return -1;
    if (p->preset)
        return FAULT (p,
                      "'%.*s' does not begin with #DW",
                      len > 60 ? 60 : (int)len,
                      s);
    if (!(name = strndup (s, len)))
        return dws_error_nomem (p->error);
    if (!(value = json_object_get (p->presets, name)))
        list_presets (p, s, len > 60 ? 60 : (int)len);
    else
        rc = parse_text (p, NULL, name, value);
    free (name);
    return rc;
}

/* Parse a line without its newline.
 */
static int parse_line (struct parser *p, const char *s, const char *end)
{
    bool backslash = false;
    const char *word = s;
    size_t len;

    while (end > s && (is_blank (end[-1]) || end[-1] == '\r'))
        end--;
    if (end > s && end[-1] == '\\') {
        backslash = true;
        end--;
    }
    if ((len = next_word (&word, end)) > 0
        && *word != '#'
        && !p->continued
        && !(p->open && memchr (word, '=', len))) {
        p->open = false;
        while (end > word && is_blank (end[-1]))
            end--;
        return parse_preset (p, word, end - word);
    }
    if (len == 0 && !p->continued)
        p->open = false;
    if (parse_words (p, word, end) < 0)
        return -1;
    p->continued = backslash && p->open;
    return 0;
}

static int parse_string (struct parser *p, json_t *value)
{
    const char *s = json_string_value (value);
    const char *end = s + json_string_length (value);

    if (memchr (s, '\0', end - s))
        return FAULT (p, "contains a NUL character");
    p->open = p->continued = false;
    while (s < end) {
        const char *eol = memchr (s, '\n', end - s);

        if (!eol)
            eol = end;
        if (!p->preset)
            p->dirs->line++;
        if (parse_line (p, s, eol) < 0)
            return -1;
        s = eol < end ? eol + 1 : end;
    }
    return 0;
}

/* 'value' is a string or an array of strings, from the jobspec or, with
 * 'preset' set, from a preset.
 */
static int parse_text (struct parser *parent,
                       json_t *presets,
                       const char *preset,
                       json_t *value)
{
    struct parser p = {
        .dirs = parent->dirs,
        .presets = presets,
        .preset = preset,
        .limit = parent->limit,
        .error = parent->error,
    };
    size_t first = p.dirs->count;
    size_t i;
    json_t *entry;

    if (json_is_string (value)) {
        if (parse_string (&p, value) < 0)
            return -1;
    }
    else if (json_is_array (value)) {
        json_array_foreach (value, i, entry) {
            if (!json_is_string (entry))
                return FAULT (&p, "list entry %zu is not a string", i + 1);
            if (parse_string (&p, entry) < 0)
                return -1;
        }
    }
    else if (preset && json_is_object (value)
             && json_object_get (value, "error"))
        return FAULT (&p, "%s", json_string_value (
                          json_object_get (value, "error")));
    else if (preset || (value && !json_is_null (value)))
        return FAULT (&p, "must be a string or a list of strings");
    if (preset && p.dirs->count == first)
        return FAULT (&p, "the preset is empty");
    parent->commented = p.commented;
    return 0;
}

/* Reject too much text before reading it: the array of a 'dw' counts too.
 */
static int check_size (json_t *dw, int limit, dws_error_t *error)
{
    json_int_t size = json_string_length (dw) + json_array_size (dw);
    json_t *entry;
    size_t i;

    if (size <= limit) {
        json_array_foreach (dw, i, entry)
            size += json_string_length (entry);
    }
    if (size > limit)
        return dws_error (error,
                          EINVAL,
                          "there are more than %d bytes of directives, which"
                          " is the limit",
                          limit);
    return 0;
}

struct dws_directives *dws_directives_parse_where (
    json_t *dw,
    json_t *presets,
    const struct dws_directive_limits *limits,
    struct dws_directive_where *where,
    dws_error_t *error)
{
    struct dws_directives *dirs;
    struct parser top = { .error = error };

    *where = (struct dws_directive_where){ 0 };
    if (!limits)
        limits = &dws_directive_limits_max;
    top.limit = limits->count;
    if (check_size (dw, limits->bytes, error) < 0)
        return NULL;
    if (!(dirs = list_create ())) {
        dws_error_nomem (error);
        return NULL;
    }
    top.dirs = dirs;
    if (parse_text (&top, presets, NULL, dw) < 0) {
        where->line = dirs->line;
        goto error;
    }
    /* Flux would hold a job for its dw that no workflow is ever made for. */
    if (dirs->count == 0 && top.commented) {
        dws_error (error, EINVAL, "there are comments only, and no #DW directive");
        goto error;
    }
    for (size_t i = 0; i < dirs->count; i++) {
        if (list_join_words (&dirs->list[i]) < 0) {
            dws_error_nomem (error);
            goto error;
        }
        if (grammar_check_directive (&dirs->list[i],
                                     i,
                                     list_add_warning,
                                     dirs,
                                     &where->line,
                                     error) < 0)
            goto error;
    }
    where->line = 0;
    if (structure_check (dirs->list, dirs->count, where, error) < 0)
        goto error;
    return dirs;
error:
    dws_directives_destroy (dirs);
    return NULL;
}

struct dws_directives *dws_directives_parse (
    json_t *dw,
    json_t *presets,
    const struct dws_directive_limits *limits,
    dws_error_t *error)
{
    struct dws_directive_where where;

    return dws_directives_parse_where (dw, presets, limits, &where, error);
}

int dws_directives_fill (struct dws_directives *dirs, const char *user,
                         const char *id, dws_error_t *error)
{
    for (size_t i = 0; i < dirs->count; i++) {
        if (directive_fill (&dirs->list[i], i, user, id, error) < 0)
            return -1;
    }
    return 0;
}

int dws_directives_variables (const struct dws_directives *dirs)
{
    int found = 0;

    for (size_t i = 0; i < dirs->count; i++)
        found |= directive_variables (&dirs->list[i]);
    return found;
}

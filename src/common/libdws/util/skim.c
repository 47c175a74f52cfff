/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See skim.h.
 */

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "libdws/util/jsonstring.h"
#include "libdws/util/skim.h"

/* Nothing that the API server has goes deeper.
 */
enum { MAX_DEPTH = 64 };

struct text {
    const char *start;
    const char *p;
    const char *end;
    int depth;
};

/* Called with the text at the value of a key; it has to pass over it.
 */
typedef bool (*member_f) (struct text *t, const char *key, size_t size,
                          void *arg);

static bool pass_value (struct text *t);

static bool is_space (char c)
{
    if ((unsigned char)c > ' ')
        return false; // nearly always
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void pass_space (struct text *t)
{
    while (t->p < t->end && is_space (*t->p))
        t->p++;
}

static bool pass_char (struct text *t, char c)
{
    pass_space (t);
    if (t->p == t->end || *t->p != c)
        return false;
    t->p++;
    return true;
}

static bool pass_word (struct text *t, const char *word)
{
    size_t size = strlen (word);

    if ((size_t)(t->end - t->p) < size || memcmp (t->p, word, size) != 0)
        return false;
    t->p += size;
    return true;
}

static bool pass_escape (struct text *t)
{
    if (t->p == t->end)
        return false;
    if (*t->p++ != 'u')
        return t->p[-1] && strchr ("\"\\/bfnrt", t->p[-1]);
    for (int i = 0; i < 4; i++, t->p++)
        if (t->p == t->end || !isxdigit ((unsigned char)*t->p))
            return false;
    return true;
}

/* The rest of a character beyond ASCII: well-formed UTF-8, as Unicode has it in
 * table 3-7, or whoever gets the text could not read it.
 */
static bool pass_utf8 (struct text *t, unsigned char first)
{
    int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;

    if (first < 0xc2 || first > 0xf4)
        return false;
    while (more-- > 0) {
        if (t->p == t->end || (unsigned char)*t->p < least
            || (unsigned char)*t->p > most)
            return false;
        t->p++;
        least = 0x80;
        most = 0xbf;
    }
    return true;
}

static bool pass_string (struct text *t, bool *escaped)
{
    if (!pass_char (t, '"'))
        return false;
    while ((t->p = dws_string_plain (t->p, t->end)) < t->end) {
        unsigned char c = *t->p++;

        if (c == '"')
            return true;
        if (c < 0x20 || (c >= 0x80 && !pass_utf8 (t, c)))
            return false;
        if (c == '\\') {
            *escaped = true;
            if (!pass_escape (t))
                return false;
        }
    }
    return false;
}

static bool pass_digits (struct text *t)
{
    const char *before = t->p;

    while (t->p < t->end && isdigit ((unsigned char)*t->p))
        t->p++;
    return t->p > before;
}

static bool pass_number (struct text *t)
{
    (void)pass_word (t, "-");
    if (!pass_word (t, "0") && !pass_digits (t))
        return false;
    if (pass_word (t, ".") && !pass_digits (t))
        return false;
    if (pass_word (t, "e") || pass_word (t, "E")) {
        if (!pass_word (t, "+"))
            (void)pass_word (t, "-");
        return pass_digits (t);
    }
    return true;
}

static bool pass_array (struct text *t)
{
    if (!pass_char (t, '['))
        return false;
    if (pass_char (t, ']'))
        return true;
    do {
        if (!pass_value (t))
            return false;
    } while (pass_char (t, ','));
    return pass_char (t, ']');
}

static bool pass_object (struct text *t, member_f cb, void *arg)
{
    if (!pass_char (t, '{'))
        return false;
    if (pass_char (t, '}'))
        return true;
    do {
        bool escaped = false;
        const char *key;

        pass_space (t);
        key = t->p + 1;
        if (!pass_string (t, &escaped) || escaped)
            return false;
        size_t size = t->p - 1 - key;

        if (!pass_char (t, ':'))
            return false;
        pass_space (t);
        if (!cb (t, key, size, arg))
            return false;
    } while (pass_char (t, ','));
    return pass_char (t, '}');
}

static bool pass_member (struct text *t, const char *key, size_t size,
                         void *arg)
{
    return pass_value (t);
}

static bool pass_value (struct text *t)
{
    bool escaped;
    bool ok;

    pass_space (t);
    if (t->p == t->end || ++t->depth > MAX_DEPTH)
        return false;
    switch (*t->p) {
    case '{':
        ok = pass_object (t, pass_member, NULL);
        break;
    case '[':
        ok = pass_array (t);
        break;
    case '"':
        ok = pass_string (t, &escaped);
        break;
    default:
        ok = pass_word (t, "true") || pass_word (t, "false")
            || pass_word (t, "null") || pass_number (t);
    }
    t->depth--;
    return ok;
}

static bool is_key (const char *name, const char *key, size_t size)
{
    return strlen (name) == size && memcmp (name, key, size) == 0;
}

/* Note a string that has no escapes.
 */
static bool note_string (struct text *t, struct dws_span *span)
{
    const char *first = t->p + 1;
    bool escaped = false;

    if (span->size || !pass_string (t, &escaped) || escaped)
        return false;
    span->at = first - t->start;
    span->size = t->p - 1 - first;
    return span->size > 0;
}

/* From its key to the comma that follows, or from the one before.
 */
static bool note_managed (struct text *t, const char *key,
                          struct dws_span *span)
{
    const char *first = key - 1;

    if (span->size || !pass_value (t))
        return false;
    pass_space (t);
    const char *last = t->p;
    if (last < t->end && *last == ',')
        last++;
    else {
        while (first > t->start && is_space (first[-1]))
            first--;
        if (first[-1] == ',')
            first--;
    }
    span->at = first - t->start;
    span->size = last - first;
    return true;
}

static bool skim_metadata (struct text *t, const char *key, size_t size,
                           void *arg)
{
    struct dws_skim *skim = arg;

    if (is_key ("name", key, size))
        return note_string (t, &skim->name);
    if (is_key ("namespace", key, size))
        return note_string (t, &skim->namespace);
    if (is_key ("resourceVersion", key, size))
        return note_string (t, &skim->version);
    if (is_key ("deletionTimestamp", key, size))
        return note_string (t, &skim->deleted);
    if (is_key ("managedFields", key, size))
        return note_managed (t, key, &skim->managed);
    return pass_value (t);
}

static bool skim_object (struct text *t, const char *key, size_t size,
                         void *arg)
{
    struct dws_skim *skim = arg;

    if (is_key ("kind", key, size))
        return note_string (t, &skim->kind);
    if (is_key ("metadata", key, size))
        return !skim->name.size && pass_object (t, skim_metadata, skim);
    return pass_value (t);
}

int dws_skim (const char *text, size_t size, struct dws_skim *skim)
{
    struct text t = { .start = text, .p = text, .end = text + size };

    memset (skim, 0, sizeof (*skim));
    if (pass_object (&t, skim_object, skim)) {
        pass_space (&t);
        if (t.p == t.end)
            return 0;
    }
    errno = EINVAL;
    return -1;
}

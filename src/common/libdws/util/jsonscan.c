/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See jsonscan.h.
 */

#include <errno.h>
#include <string.h>

#include "jsonscan.h"

struct dws_text dws_text (const char *s)
{
    return (struct dws_text){ s, s ? strlen (s) : 0 };
}

bool dws_text_is (struct dws_text text, const char *s)
{
    return text.s && text.len == strlen (s) && !memcmp (text.s, s, text.len);
}

static struct dws_text between (const char *s, const char *end)
{
    return (struct dws_text){ s, end - s };
}

/* These return what comes after that which is at 's', or NULL.
 */
static const char *skip_space (const char *s, const char *end)
{
    while (s < end && (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r'))
        s++;
    return s;
}

static bool is_escaped (const char *begin, const char *s)
{
    const char *first = s;

    while (first > begin && first[-1] == '\\')
        first--;
    return (s - first) % 2 == 1;
}

static const char *skip_string (const char *s, const char *end)
{
    const char *begin = s + 1;

    for (s = begin; s < end && (s = memchr (s, '"', end - s)); s++) {
        if (!is_escaped (begin, s))
            return s + 1;
    }
    return NULL;
}

static const char *skip_nested (const char *s, const char *end)
{
    size_t depth = 0;

    while (s && s < end) {
        switch (*s) {
            case '"':
                s = skip_string (s, end);
                continue;
            case '{':
            case '[':
                depth++;
                break;
            case '}':
            case ']':
                if (--depth == 0)
                    return s + 1;
                break;
        }
        s++;
    }
    return NULL;
}

static const char *skip_word (const char *s, const char *end)
{
    const char *begin = s;

    while (s < end && !memchr (",]} \t\n\r", *s, 7))
        s++;
    return s > begin ? s : NULL;
}

static bool is_nested (const char *s)
{
    return *s == '{' || *s == '[';
}

static const char *skip_value (const char *s, const char *end)
{
    if (s == end)
        return NULL;
    if (*s == '"')
        return skip_string (s, end);
    return is_nested (s) ? skip_nested (s, end) : skip_word (s, end);
}

static const char *take_key (const char *s, const char *end,
                             struct dws_text *key)
{
    const char *after = s < end && *s == '"' ? skip_string (s, end) : NULL;

    if (!after)
        return NULL;
    *key = between (s + 1, after - 1);
    s = skip_space (after, end);
    return s < end && *s == ':' ? skip_space (s + 1, end) : NULL;
}

/* A place among the members of an object, or the entries of an array.
 */
struct place {
    const char *s;
    const char *end;            // of the text
    char close;
    bool begun;
};

static void enter (struct place *place, const char *s, const char *end)
{
    *place = (struct place){ s + 1, end, *s == '{' ? '}' : ']', false };
}

/* Go on to the value of the next one. Returns 1, 0 after the last one, or -1.
 */
static int advance (struct place *place, struct dws_text *key)
{
    const char *s = skip_space (place->s, place->end);

    if (s < place->end && *s == place->close) {
        place->s = s + 1;
        return 0;
    }
    if (place->begun) {
        if (s == place->end || *s != ',')
            return -1;
        s = skip_space (s + 1, place->end);
    }
    place->begun = true;
    key->s = NULL;
    if (place->close == '}')
        s = take_key (s, place->end, key);
    place->s = s;
    return s && s < place->end ? 1 : -1;
}

static int malformed (void)
{
    errno = EINVAL;
    return -1;
}

int dws_text_next (struct dws_text text, size_t *at, struct dws_text *key,
                   struct dws_text *value)
{
    const char *after;
    struct dws_text k;
    struct place place;
    int rc;

    if (text.len == 0 || !is_nested (text.s))
        return malformed ();
    enter (&place, text.s, text.s + text.len);
    if (*at > 0) {
        place.s = text.s + *at;
        place.begun = true;
    }
    if ((rc = advance (&place, &k)) < 0)
        return malformed ();
    if (rc > 0) {
        if (!(after = skip_value (place.s, place.end)))
            return malformed ();
        *value = between (place.s, after);
        if (key)
            *key = k;
        place.s = after;
    }
    *at = place.s - text.s;
    return rc;
}

int dws_text_advance (struct dws_text *rest, bool begun)
{
    struct place place;
    struct dws_text key;
    int rc;

    if (rest->len == 0 || (!begun && *rest->s != '['))
        return malformed ();
    place = (struct place){
        .s = begun ? rest->s : rest->s + 1,
        .end = rest->s + rest->len,
        .close = ']',
        .begun = begun,
    };
    if ((rc = advance (&place, &key)) < 0)
        return malformed ();
    *rest = between (place.s, place.end);
    return rc;
}

struct dws_text dws_text_find (struct dws_text text, const char *key)
{
    struct place place;
    struct dws_text k;

    if (text.len > 0 && *text.s == '{') {
        enter (&place, text.s, text.s + text.len);
        while (place.s && advance (&place, &k) > 0) {
            if (dws_text_is (k, key))
                return between (place.s, place.end);
            place.s = skip_value (place.s, place.end);
        }
    }
    return (struct dws_text){ NULL, 0 };
}

/* Excerpts
 */

static void add (struct dws_excerpt *excerpt, const char *s, size_t len)
{
    memcpy (excerpt->buf + excerpt->len, s, len);
    excerpt->len += len;
}

static const struct dws_part *find_part (const struct dws_part *parts,
                                         struct dws_text key)
{
    for (; parts->key; parts++) {
        if (dws_text_is (key, parts->key))
            return parts;
    }
    return NULL;
}

static bool is_wanted (struct dws_text entry, const struct dws_part *of)
{
    return !of->wanted || of->wanted (entry);
}

static const char *copy_value (struct dws_excerpt *excerpt, const char *s,
                               const char *end, const struct dws_part *of);

/* Returns what comes after the value, or NULL.
 */
static const char *copy_next (struct dws_excerpt *excerpt, struct place *place,
                              struct dws_text key, const struct dws_part *of,
                              bool *some)
{
    const struct dws_part entries = { .parts = of->parts };
    const struct dws_part *part = &entries;
    const char *after;

    if (key.s ? of->parts && !(part = find_part (of->parts, key))
              : of->wanted != NULL) {
        after = skip_value (place->s, place->end);
        if (key.s || !after || !is_wanted (between (place->s, after), of))
            return after;
    }
    if (*some)
        add (excerpt, ",", 1);
    *some = true;
    if (key.s) {
        add (excerpt, key.s - 1, key.len + 2);
        add (excerpt, ":", 1);
    }
    after = copy_value (excerpt, place->s, place->end, part);
    if (after && part->marked)
        excerpt->marked = between (place->s, after);
    return after;
}

static const char *copy_value (struct dws_excerpt *excerpt, const char *s,
                               const char *end, const struct dws_part *of)
{
    const char *begin = s;
    struct place place;
    struct dws_text key;
    bool some = false;
    int rc;

    if ((!of->parts && !of->wanted) || s == end || !is_nested (s)) {
        if ((s = skip_value (s, end)))
            add (excerpt, begin, s - begin);
        return s;
    }
    add (excerpt, s, 1);
    enter (&place, s, end);
    while ((rc = advance (&place, &key)) > 0) {
        if (!(place.s = copy_next (excerpt, &place, key, of, &some)))
            return NULL;
    }
    add (excerpt, &place.close, 1);
    return rc < 0 ? NULL : place.s;
}

int dws_text_excerpt (struct dws_text text, const struct dws_part *parts,
                      struct dws_excerpt *excerpt)
{
    const struct dws_part all = { .parts = parts };
    const char *end = text.s + text.len;
    const char *after = NULL;

    excerpt->len = 0;
    excerpt->marked = (struct dws_text){ NULL, 0 };
    if (text.len == 0
        || !(after = copy_value (excerpt, text.s, end, &all)))
        return malformed ();
    excerpt->rest = between (after, end);
    return 0;
}

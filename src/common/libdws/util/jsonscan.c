/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See jsonscan.h.
 */

#include <errno.h>
#include <string.h>

#include "jsonscan_private.h"
#include "jsonstring.h"

struct dws_text dws_text (const char *s)
{
    return (struct dws_text){ s, s ? strlen (s) : 0 };
}

bool dws_text_is (struct dws_text text, const char *s)
{
    return text.s && text.len == strlen (s) && !memcmp (text.s, s, text.len);
}

/* These return what comes after that which is at 's', or NULL.
 */
static const char *skip_space (const char *s, const char *end)
{
    while (s < end && (*s == ' ' || *s == '\t' || *s == '\n' || *s == '\r'))
        s++;
    return s;
}

static const char *skip_nested (const char *s, const char *end)
{
    size_t depth = 0;

    while (s && s < end) {
        switch (*s) {
            case '"':
                s = dws_string_end (s + 1, end);
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

const char *skip_value (const char *s, const char *end)
{
    if (s == end)
        return NULL;
    if (*s == '"')
        return dws_string_end (s + 1, end);
    return is_nested (s) ? skip_nested (s, end) : skip_word (s, end);
}

static const char *take_key (const char *s, const char *end,
                             struct dws_text *key)
{
    const char *after;

    if (s == end || *s != '"' || !(after = dws_string_end (s + 1, end)))
        return NULL;
    *key = between (s + 1, after - 1);
    s = skip_space (after, end);
    return s < end && *s == ':' ? skip_space (s + 1, end) : NULL;
}

int advance (struct place *place, struct dws_text *key)
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

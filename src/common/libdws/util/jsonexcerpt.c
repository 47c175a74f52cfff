/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See jsonexcerpt.h.
 */

#include <errno.h>
#include <string.h>

#include "jsonexcerpt.h"
#include "jsonscan_private.h"

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
    const char *after;

    excerpt->len = 0;
    excerpt->marked = (struct dws_text){ NULL, 0 };
    if (text.len == 0
        || !(after = copy_value (excerpt, text.s, text.s + text.len, &all))) {
        errno = EINVAL;
        return -1;
    }
    excerpt->rest = between (after, text.s + text.len);
    return 0;
}

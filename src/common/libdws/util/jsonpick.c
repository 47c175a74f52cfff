/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See jsonpick.h.
 */

#include <errno.h>
#include <string.h>

#include "jsonparse.h"
#include "jsonpick.h"
#include "jsonscan_private.h"
#include "jsonstring.h"

struct picker {
    char *to;
    json_t **decoded;
    int errnum;                 // of a failure
};

int dws_text_keep (json_t *value, json_t **decoded)
{
    if (!*decoded)
        *decoded = json_array ();
    if (json_array_append_new (*decoded, value) < 0) {
        errno = ENOMEM;
        return -1;
    }
    return 0;
}

/* jansson alone says what a string means that is not plain.
 */
static int decode_string (struct dws_text value, struct dws_text *string,
                          json_t **decoded)
{
    json_t *o = dws_json_parse (value.s, value.len);

    if (!o || dws_text_keep (o, decoded) < 0)
        return -1;
    *string = (struct dws_text){ json_string_value (o),
                                 json_string_length (o) };
    return 1;
}

static bool is_plain (struct dws_text value)
{
    const char *end = value.s + value.len;

    return dws_string_plain (value.s + 1, end) == end - 1;
}

int dws_text_string (struct dws_text value, struct dws_text *string,
                     json_t **decoded)
{
    if (*value.s == '"') {
        if (!is_plain (value))
            return decode_string (value, string, decoded);
        *string = (struct dws_text){ value.s + 1, value.len - 2 };
        return 1;
    }
    json_t *o = dws_json_parse (value.s, value.len);

    json_decref (o);
    return o ? 0 : -1;
}

static int take_number (const struct dws_member *m, struct dws_text value,
                        void *to)
{
    json_t *o = dws_json_parse (value.s, value.len);

    if (!o)
        return -1;
    if (m->type == DWS_PICK_TRUE)
        *(bool *)to = json_is_true (o);
    else if (json_is_integer (o))
        *(json_int_t *)to = json_integer_value (o);
    json_decref (o);
    return 0;
}

static bool has_members (const struct dws_member *m, const char *s)
{
    return m->members && *s == '{';
}

static bool has_entries (const struct dws_member *m, const char *s)
{
    return m->each && *s == '[';
}

static int take_value (struct picker *picker, const struct dws_member *m,
                       struct dws_text value)
{
    struct dws_text other;
    void *to = picker->to + m->offset;

    switch (m->type) {
        case DWS_PICK_NOTHING:
            if (has_members (m, value.s) || has_entries (m, value.s))
                return 0;
            return dws_text_string (value, &other, picker->decoded);
        case DWS_PICK_STRING:
            return dws_text_string (value, to, picker->decoded);
        case DWS_PICK_TRUE:
        case DWS_PICK_INTEGER:
            return take_number (m, value, to);
        case DWS_PICK_VALUE:
            *(struct dws_text *)to = value;
            if (is_nested (value.s))
                return 0;
            return dws_text_string (value, &other, picker->decoded);
    }
    return 0;
}

static const char *pick_value (struct picker *picker, const char *s,
                               const char *end, const struct dws_member *m);

static int find_member (const struct dws_member *members, struct dws_text key)
{
    for (int i = 0; members[i].key; i++) {
        if (*members[i].key == *key.s && dws_text_is (key, members[i].key))
            return i;
    }
    return -1;
}

/* Returns what comes after the object at 's', or NULL.
 */
static const char *pick_object (struct picker *picker, const char *s,
                                const char *end,
                                const struct dws_member *members)
{
    unsigned int found = 0;
    struct dws_text key;
    struct place place;
    int rc = 0;

    enter (&place, s, end);
    while (place.s && (rc = advance (&place, &key)) > 0) {
        int i = find_member (members, key);

        if (i < 0)
            place.s = skip_value (place.s, end);
        else if (found & 1u << i)
            return NULL;
        else {
            place.s = pick_value (picker, place.s, end, &members[i]);
            found |= 1u << i;
        }
    }
    return !place.s || rc < 0 ? NULL : place.s;
}

static const char *pick_entries (struct picker *picker, const char *s,
                                 const char *end, const struct dws_member *m)
{
    struct dws_text key;
    struct place place;
    int rc;

    enter (&place, s, end);
    while ((rc = advance (&place, &key)) > 0) {
        struct dws_text text = between (place.s, end);

        if (m->each (&text, picker->to + m->offset, picker->decoded) < 0) {
            picker->errnum = errno;
            return NULL;
        }
        place.s = text.s;
    }
    return rc < 0 ? NULL : place.s;
}

static const char *pick_value (struct picker *picker, const char *s,
                               const char *end, const struct dws_member *m)
{
    const char *after = has_members (m, s)
                        ? pick_object (picker, s, end, m->members)
                        : has_entries (m, s) ? pick_entries (picker, s, end, m)
                                             : skip_value (s, end);

    if (after && take_value (picker, m, between (s, after)) < 0) {
        picker->errnum = errno;
        return NULL;
    }
    return after;
}

int dws_text_pick (struct dws_text *text, const struct dws_member *members,
                   void *to, json_t **decoded)
{
    const struct dws_member all = { .members = members };
    struct picker picker = { to, decoded, EINVAL };
    const char *end;
    const char *after;

    /* A text that is not there has no end either. */
    if (text->len == 0) {
        errno = EINVAL;
        return -1;
    }
    end = text->s + text->len;
    if (!(after = pick_value (&picker, text->s, end, &all))) {
        errno = picker.errnum;
        return -1;
    }
    *text = between (after, end);
    return 0;
}

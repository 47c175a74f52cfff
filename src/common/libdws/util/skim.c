/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See skim.h.
 */

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
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

static bool take_hex (struct text *t, unsigned int *code)
{
    char digits[5] = "";

    for (int i = 0; i < 4; i++) {
        if (t->p == t->end || !isxdigit ((unsigned char)*t->p))
            return false;
        digits[i] = *t->p++;
    }
    *code = strtoul (digits, NULL, 16);
    return true;
}

/* Not NUL, nor half of a character: whoever gets the text could not read it.
 */
static bool pass_escape (struct text *t)
{
    unsigned int code;

    if (t->p == t->end)
        return false;
    if (*t->p++ != 'u')
        return t->p[-1] && strchr ("\"\\/bfnrt", t->p[-1]);
    if (!take_hex (t, &code) || code == 0)
        return false;
    if (code < 0xd800 || code > 0xdfff)
        return true;
    return code < 0xdc00 && pass_word (t, "\\u") && take_hex (t, &code)
        && code >= 0xdc00 && code <= 0xdfff;
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

static bool pass_member (struct text *t, const char *key, size_t size,
                         void *arg)
{
    return pass_value (t);
}

/* A key that is looked at has no escapes. Those of managedFields have, as there values
 * are keys.
 */
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
        if (!pass_string (t, &escaped) || (escaped && cb != pass_member))
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
    if (is_key ("uid", key, size))
        return note_string (t, &skim->uid);
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

/* Watches
 */

static bool skim_line (struct text *t, const char *key, size_t size, void *arg)
{
    struct dws_event *event = arg;
    struct dws_span type = { 0 };
    const char *first = t->p;

    if (is_key ("object", key, size)) {
        if (event->object.size || !pass_object (t, skim_object, &event->skim))
            return false;
        event->object.at = first - t->start;
        event->object.size = t->p - first;
        return true;
    }
    if (!is_key ("type", key, size) || event->type != DWS_EVENT_OTHER
        || !note_string (t, &type))
        return false;
    if (is_key ("ADDED", first + 1, type.size))
        event->type = DWS_EVENT_ADDED;
    else if (is_key ("MODIFIED", first + 1, type.size))
        event->type = DWS_EVENT_MODIFIED;
    else if (is_key ("DELETED", first + 1, type.size))
        event->type = DWS_EVENT_DELETED;
    else if (is_key ("BOOKMARK", first + 1, type.size))
        event->type = DWS_EVENT_BOOKMARK;
    return event->type != DWS_EVENT_OTHER;
}

static void skim_event (struct text line, struct dws_event *event)
{
    struct text t = line;

    memset (event, 0, sizeof (*event));
    if (pass_object (&t, skim_line, event)
        && event->type != DWS_EVENT_OTHER
        && event->object.size > 0) {
        pass_space (&t);
        if (t.p == t.end)
            return;
    }
    memset (event, 0, sizeof (*event));
    event->object.at = line.p - line.start;
    event->object.size = line.end - line.p;
}

size_t dws_skim_events (const char *text, size_t size, struct dws_event *events,
                        size_t max, size_t *used)
{
    struct text line = { .start = text, .p = text };
    size_t count = 0;

    while (count < max
           && (line.end = memchr (line.p, '\n', text + size - line.p))) {
        const char *next = line.end + 1;

        pass_space (&line);
        if (line.p < line.end)
            skim_event (line, &events[count++]);
        line.p = next;
    }
    *used = line.p - text;
    return count;
}

/* The next event of each object, by its name: open addressing.
 */
struct nexts {
    struct dws_event **slots;
    size_t mask;
};

static bool same (const char *text, struct dws_span a, struct dws_span b)
{
    return a.size == b.size && memcmp (text + a.at, text + b.at, a.size) == 0;
}

static uint32_t hash_span (const char *text, struct dws_span span,
                           uint32_t hash)
{
    for (size_t i = 0; i < span.size; i++)
        hash = (hash ^ (unsigned char)text[span.at + i]) * 16777619u;
    return hash;
}

/* Where it is, or is to be.
 */
static struct dws_event **nexts_slot (struct nexts *nexts, const char *text,
                                      const struct dws_skim *skim)
{
    size_t i = hash_span (text, skim->namespace,
                          hash_span (text, skim->name, 2166136261u));

    for (;; i++) {
        struct dws_event **slot = &nexts->slots[i & nexts->mask];

        if (!*slot
            || (same (text, (*slot)->skim.name, skim->name)
                && same (text, (*slot)->skim.namespace, skim->namespace)))
            return slot;
    }
}

static bool is_number (const char *text, struct dws_span span)
{
    for (size_t i = 0; i < span.size; i++)
        if (!isdigit ((unsigned char)text[span.at + i]))
            return false;
    return span.size > 0;
}

/* Resource versions that are not numbers can not be compared.
 */
static bool is_older (const char *text, struct dws_span a, struct dws_span b)
{
    if (!is_number (text, a) || !is_number (text, b))
        return false;
    if (a.size != b.size)
        return a.size < b.size;
    return memcmp (text + a.at, text + b.at, a.size) < 0;
}

static bool is_superseded (const char *text, const struct dws_event *event,
                           const struct dws_event *next)
{
    return next && next->type == DWS_EVENT_MODIFIED
        && (event->type == DWS_EVENT_ADDED || event->type == DWS_EVENT_MODIFIED)
        && same (text, event->skim.uid, next->skim.uid)
        && !is_older (text, next->skim.version, event->skim.version);
}

/* From the last one on. What is left out has no object.
 */
static void leave_out (const char *text, struct dws_event *events, size_t count,
                       struct nexts *nexts)
{
    for (struct dws_event *event = events + count; event-- > events;) {
        struct dws_event **next;

        if (event->type == DWS_EVENT_OTHER)
            return;
        if (event->type == DWS_EVENT_BOOKMARK || !event->skim.name.size)
            continue;
        next = nexts_slot (nexts, text, &event->skim);
        if (is_superseded (text, event, *next)) {
            (*next)->type = event->type;
            event->object.size = 0;
        }
        else
            *next = event;
    }
}

size_t dws_events_newest (const char *text, struct dws_event *events,
                          size_t count)
{
    struct nexts nexts = { .mask = 1 };
    size_t left = 0;

    while (nexts.mask < 2 * count)
        nexts.mask = 2 * nexts.mask + 1;
    if (count < 2
        || !(nexts.slots = calloc (nexts.mask + 1, sizeof (nexts.slots[0]))))
        return count; // without memory nothing is left out
    leave_out (text, events, count, &nexts);
    free (nexts.slots);
    for (size_t i = 0; i < count; i++)
        if (events[i].object.size > 0)
            events[left++] = events[i];
    return left;
}

/* Lists
 */

struct items {
    struct dws_list *list;
    struct dws_item *items;
    size_t max;
    bool seen;                          // the key of them
    bool metadata;                      // that of metadata
};

static bool skim_item (struct text *t, struct items *items)
{
    struct dws_item item = { 0 };

    pass_space (t);
    const char *first = t->p;
    if (!pass_object (t, skim_object, &item.skim))
        return false;
    item.object.at = first - t->start;
    item.object.size = t->p - first;
    if (items->list->count < items->max)
        items->items[items->list->count] = item;
    items->list->count++;
    return true;
}

static bool skim_items (struct text *t, struct items *items)
{
    if (items->seen)
        return false;
    items->seen = true;
    if (pass_word (t, "null"))
        return true;
    if (!pass_char (t, '['))
        return false;
    if (pass_char (t, ']'))
        return true;
    do {
        if (!skim_item (t, items))
            return false;
    } while (pass_char (t, ','));
    return pass_char (t, ']');
}

static bool skim_list_metadata (struct text *t, const char *key, size_t size,
                                void *arg)
{
    struct dws_list *list = arg;

    if (is_key ("resourceVersion", key, size))
        return note_string (t, &list->version);
    if (is_key ("continue", key, size))
        return (!list->more.size && pass_word (t, "\"\""))
            || note_string (t, &list->more);
    return pass_value (t);
}

static bool skim_list (struct text *t, const char *key, size_t size, void *arg)
{
    struct items *items = arg;

    if (is_key ("items", key, size))
        return skim_items (t, items);
    if (is_key ("metadata", key, size)) {
        if (items->metadata)
            return false;
        items->metadata = true;
        return pass_object (t, skim_list_metadata, items->list);
    }
    return pass_value (t);
}

int dws_skim_list (const char *text, size_t size, struct dws_list *list,
                   struct dws_item *items, size_t max)
{
    struct text t = { .start = text, .p = text, .end = text + size };
    struct items arg = { .list = list, .items = items, .max = max };

    memset (list, 0, sizeof (*list));
    if (pass_object (&t, skim_list, &arg)) {
        pass_space (&t);
        if (t.p == t.end)
            return 0;
    }
    errno = EINVAL;
    return -1;
}

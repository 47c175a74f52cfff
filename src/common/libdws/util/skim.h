/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The few parts of a Kubernetes object's text that matter to whoever hands it
 * on, found without decoding the rest.
 */

#ifndef LIBDWS_SKIM_H
#define LIBDWS_SKIM_H

#include <stdbool.h>
#include <stddef.h>

/* A part of the text; 'size' is 0 if it is not there.
 */
struct dws_span {
    size_t at;
    size_t size;
};

struct dws_skim {
    struct dws_span kind;               // strings, without their quotes
    struct dws_span name;
    struct dws_span namespace;
    struct dws_span uid;
    struct dws_span version;            // metadata.resourceVersion
    struct dws_span deleted;            // metadata.deletionTimestamp
    struct dws_span managed;            // what to cut out to be rid of
                                        // metadata.managedFields
};

/* Look at the text of one object. Returns -1 with errno = EINVAL if it is no
 * JSON object, or one that has to be decoded to be sure: with escapes in a key of the
 * object or of its metadata, escapes or another type in a part that matters, such a key
 * twice, or a string with NUL or half of a surrogate pair.
 */
int dws_skim (const char *text, size_t size, struct dws_skim *skim);

enum dws_event_type {
    DWS_EVENT_OTHER,                    // the line has to be decoded
    DWS_EVENT_ADDED,
    DWS_EVENT_MODIFIED,
    DWS_EVENT_DELETED,
    DWS_EVENT_BOOKMARK,
};

/* A line of a watch.
 */
struct dws_event {
    enum dws_event_type type;
    struct dws_span object;             // if the type is DWS_EVENT_OTHER: the line
    struct dws_skim skim;               // of the object; counted from the text's
                                        // beginning
};

/* Look at the whole lines of a watch that 'text' begins with, at most 'max' of them;
 * those that are empty do not count. Returns how many there are, and where the next
 * one begins in '*used'.
 */
size_t dws_skim_events (const char *text, size_t size, struct dws_event *events,
                        size_t max, size_t *used);

/* Of events of one object that tell no more than that it has changed again leave only
 * the last: one is left out if the next of the same object (by uid, too) is MODIFIED and
 * not of a lower resourceVersion, unless it is DELETED itself. It is ADDED then if the
 * one before it was. None is left
 * out before one that has to be decoded, which is rare. Returns how many are left, in
 * their order.
 */
size_t dws_events_newest (const char *text, struct dws_event *events,
                          size_t count);

/* A list of objects.
 */
struct dws_list {
    struct dws_span version;            // metadata.resourceVersion
    struct dws_span more;               // metadata.continue
    size_t count;                       // of items
};

struct dws_item {
    struct dws_span object;
    struct dws_skim skim;               // counted from the text's beginning
};

/* Look at the text of a list. No more than 'max' items are noted, but all are
 * counted. Returns -1 as dws_skim() does, also if an item can not be skimmed.
 */
int dws_skim_list (const char *text, size_t size, struct dws_list *list,
                   struct dws_item *items, size_t max);

#endif /* !LIBDWS_SKIM_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The few parts of a Kubernetes object's text that matter to whoever hands it
 * on, found without decoding the rest.
 */

#ifndef LIBDWS_SKIM_H
#define LIBDWS_SKIM_H

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
    struct dws_span version;            // metadata.resourceVersion
    struct dws_span deleted;            // metadata.deletionTimestamp
    struct dws_span managed;            // what to cut out to be rid of
                                        // metadata.managedFields
};

/* Look at the text of one object. Returns -1 with errno = EINVAL if it is no
 * JSON object, or one that has to be decoded to be sure: with escapes in a key,
 * escapes or another type in a part that matters, or such a key twice.
 */
int dws_skim (const char *text, size_t size, struct dws_skim *skim);

#endif /* !LIBDWS_SKIM_H */

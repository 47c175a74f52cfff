/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Of JSON as text those parts that somebody reads, to be parsed then. What is passed
 * over is not checked beyond its quotes and brackets.
 */

#ifndef LIBDWS_JSONEXCERPT_H
#define LIBDWS_JSONEXCERPT_H

#include <stdbool.h>
#include <stddef.h>

#include "jsonscan.h"

/* The members that are wanted of an object, or of each object of an array. The last
 * has no key.
 */
struct dws_part {
    const char *key;
    const struct dws_part *parts;       // of that member, NULL: all of it
    bool (*wanted)(struct dws_text);    // entries of an array, NULL: all
    bool marked;                        // struct dws_excerpt
};

/* The wanted parts of a value, as text.
 */
struct dws_excerpt {
    char *buf;                  // the caller's, at least as large as the text
    size_t len;                 // what of it is used
    struct dws_text marked;     // all of the marked part, where there is one
    struct dws_text rest;       // what follows the value
};

/* Take of the value that 'text' begins with what 'parts' has (NULL: all). Fails with
 * EINVAL.
 */
int dws_text_excerpt (struct dws_text text, const struct dws_part *parts,
                      struct dws_excerpt *excerpt);

#endif /* !LIBDWS_JSONEXCERPT_H */

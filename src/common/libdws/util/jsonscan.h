/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * JSON as text, to be gone through without parsing it: to pass over a value costs a
 * tenth of that. What is passed over is not checked beyond its quotes and brackets.
 */

#ifndef LIBDWS_JSONSCAN_H
#define LIBDWS_JSONSCAN_H

#include <stdbool.h>
#include <stddef.h>

/* A value as it is written, borrowed. It has no NUL at its end.
 */
struct dws_text {
    const char *s;              // NULL: there is none
    size_t len;
};

struct dws_text dws_text (const char *s);

/* Does it say so, with quotes where it is a string?
 */
bool dws_text_is (struct dws_text text, const char *s);

/* Go through the object or array that 'text' begins with. '*at' is 0 before the first
 * call, and where 'text' goes on after the last one. 'key' has no quotes and is as it
 * is written; it is empty in an array, and may be NULL. Returns 1 if there was one
 * more, 0 at the end, and -1 with errno EINVAL if this is neither object nor array, or
 * is malformed.
 */
int dws_text_next (struct dws_text text, size_t *at, struct dws_text *key,
                   struct dws_text *value);

/* Go on to an entry of the array that 'rest' begins with or, when one has 'begun', to
 * the one after what came before 'rest'. Then 'rest' begins with that entry. Returns
 * as dws_text_next().
 */
int dws_text_advance (struct dws_text *rest, bool begun);

/* The member of that name of the object that 'text' begins with, and all that follows
 * in 'text'; or one that is not there. No more is read than what is before it.
 */
struct dws_text dws_text_find (struct dws_text text, const char *key);

#endif /* !LIBDWS_JSONSCAN_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * How near a word is to one that is known, for "did you mean".
 */

#ifndef LIBDWS_SPELLING_H
#define LIBDWS_SPELLING_H

#include <stdbool.h>
#include <stddef.h>

/* Is 'word' the same as 'known' but for a letter or two? Case does not count.
 */
bool dws_is_misspelt (const char *word, const char *known);

/* The same, and true if 'known' begins with 'word'.
 */
bool dws_is_similar (const char *word, const char *known);

/* Find the known word of which 'word' is a misspelling. Set 'word', try each known
 * word, then read 'known': NULL if there is none.
 */
struct dws_nearest {
    const char *word;
    const char *known;
    size_t distance;
};

void dws_nearest_try (struct dws_nearest *nearest, const char *known);

/* ", did you mean KNOWN?", or "" if there is none. Returns buf.
 */
#define DWS_NEAREST_SIZE 96
const char *dws_nearest_hint (const struct dws_nearest *nearest, char *buf, size_t size);

#endif /* !LIBDWS_SPELLING_H */

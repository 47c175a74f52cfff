/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See spelling.h.
 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "spelling.h"

/* Edit distance where a swap of neighbours counts as one edit. Words of
 * more than 31 characters count as far from everything.
 */
static size_t distance (const char *a, const char *b)
{
    size_t la = strlen (a);
    size_t lb = strlen (b);
    size_t d[32][32];

    if (la > 31 || lb > 31)
        return 32;
    for (size_t i = 0; i <= la; i++)
        d[i][0] = i;
    for (size_t j = 0; j <= lb; j++)
        d[0][j] = j;
    for (size_t i = 1; i <= la; i++) {
        for (size_t j = 1; j <= lb; j++) {
            size_t cost = tolower ((unsigned char)a[i - 1])
                          != tolower ((unsigned char)b[j - 1]);
            size_t best = d[i - 1][j - 1] + cost;

            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1
                && a[i - 1] == b[j - 2]
                && a[i - 2] == b[j - 1]
                && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[la][lb];
}

static size_t allowed (const char *known)
{
    return strlen (known) < 5 ? 1 : 2;
}

bool dws_is_misspelt (const char *word, const char *known)
{
    return distance (word, known) <= allowed (known);
}

bool dws_is_similar (const char *word, const char *known)
{
    size_t len = strlen (word);

    if (len >= 3 && strncasecmp (word, known, len) == 0)
        return true;
    return dws_is_misspelt (word, known);
}

void dws_nearest_try (struct dws_nearest *nearest, const char *known)
{
    size_t d = distance (nearest->word, known);

    if (d <= allowed (known) && (!nearest->known || d < nearest->distance)) {
        nearest->known = known;
        nearest->distance = d;
    }
}

const char *dws_nearest_hint (const struct dws_nearest *nearest, char *buf, size_t size)
{
    if (nearest->known)
        snprintf (buf, size, ", did you mean %s?", nearest->known);
    else
        buf[0] = '\0';
    return buf;
}

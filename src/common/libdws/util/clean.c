/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See clean.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clean.h"

/* Characters that are not shown, from first to last, in ascending order.
 * Surrogates are not among them: UTF-8 has none.
 */
static const struct range {
    uint32_t first;
    uint32_t last;
} hidden[] = {
    { 0x0000, 0x001f },         // controls
    { 0x007f, 0x009f },
    { 0x00ad, 0x00ad },         // soft hyphen
    { 0x0600, 0x0605 },         // Arabic signs that enclose numbers
    { 0x061c, 0x061c },         // Arabic letter mark
    { 0x06dd, 0x06dd },
    { 0x070f, 0x070f },
    { 0x0890, 0x0891 },
    { 0x08e2, 0x08e2 },
    { 0x180e, 0x180e },
    { 0x200b, 0x200f },         // zero width, marks of direction
    { 0x2028, 0x202e },         // separators, embeddings, overrides
    { 0x2060, 0x206f },         // word joiner, isolates
    { 0xfeff, 0xfeff },         // byte order mark
    { 0xfff9, 0xfffb },
    { 0x110bd, 0x110bd },
    { 0x110cd, 0x110cd },
    { 0x13430, 0x1343f },
    { 0x1bca0, 0x1bca3 },
    { 0x1d173, 0x1d17a },
    { 0xe0000, 0xe007f },       // tags
};

static bool is_hidden (uint32_t c)
{
    for (size_t i = 0; i < sizeof (hidden) / sizeof (hidden[0]); i++) {
        if (c <= hidden[i].last)
            return c >= hidden[i].first;
    }
    return false;
}

static bool is_blank (uint32_t c)
{
    return c == '\t' || c == '\n' || c == '\r';
}

/* Decode the character that 's' begins with. Returns its length in bytes, or 0
 * if that is not UTF-8: incomplete, longer than need be, or no character.
 */
static size_t decode (const unsigned char *s, uint32_t *c)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t len = *s < 0x80 ? 1
                 : (*s & 0xe0) == 0xc0 ? 2
                 : (*s & 0xf0) == 0xe0 ? 3
                 : (*s & 0xf8) == 0xf0 ? 4 : 0;

    *c = len < 2 ? *s : *s & (0x7f >> len);
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        *c = *c << 6 | (s[i] & 0x3f);
    }
    if (len == 0 || *c < least[len] || *c > 0x10ffff
        || (*c >= 0xd800 && *c <= 0xdfff))
        return 0;
    return len;
}

const char *dws_clean (const char *text, char *buf, size_t size)
{
    static const char replacement[] = "\xef\xbf\xbd";
    const char *s = text;
    size_t n = 0;

    while (*s) {
        const char *shown = s;
        uint32_t c;
        size_t len = decode ((const unsigned char *)s, &c);
        size_t width = len;

        if (len == 0) {
            s++;
            continue;
        }
        if (is_blank (c))
            shown = " ";
        else if (is_hidden (c)) {
            shown = replacement;
            width = sizeof (replacement) - 1;
        }
        if (width >= size - n)
            break;
        memcpy (buf + n, shown, width);
        n += width;
        s += len;
    }
    buf[n] = '\0';
    return buf;
}

char *dws_clean_copy (const char *text)
{
    /* A control character of one byte becomes one of three. */
    size_t size = 3 * strlen (text) + 1;
    char *buf;

    if (!(buf = malloc (size))) {
        errno = ENOMEM;
        return NULL;
    }
    dws_clean (text, buf, size);
    return buf;
}

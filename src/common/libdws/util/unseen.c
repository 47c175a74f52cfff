/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See unseen.h.
 */

#include <stdio.h>
#include <string.h>

#include "unseen.h"

struct range {
    uint32_t first;
    uint32_t last;
};

/* Controls, formats, separators of lines: in order. Characters that Unicode has not
 * given out count where their neighbours do.
 */
static const struct range hidden[] = {
    { 0x0000, 0x001f }, { 0x007f, 0x009f }, { 0x00ad, 0x00ad },
    { 0x0600, 0x0605 }, { 0x061c, 0x061c }, { 0x06dd, 0x06dd },
    { 0x070f, 0x070f }, { 0x0890, 0x0891 }, { 0x08e2, 0x08e2 },
    { 0x180e, 0x180e }, { 0x200b, 0x200f }, { 0x2028, 0x202e },
    { 0x2060, 0x206f }, { 0xfeff, 0xfeff }, { 0xfff9, 0xfffb },
    { 0x110bd, 0x110bd }, { 0x110cd, 0x110cd }, { 0x13430, 0x1343f },
    { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a }, { 0xe0000, 0xe007f },
};

/* White space besides blank and tab: in order.
 */
static const struct range spaces[] = {
    { 0x00a0, 0x00a0 }, { 0x1680, 0x1680 }, { 0x2000, 0x200a },
    { 0x202f, 0x202f }, { 0x205f, 0x205f }, { 0x3000, 0x3000 },
};

static const struct {
    uint32_t c;
    const char *name;
} names[] = {
    { 0x0009, "TAB" },
    { 0x000b, "VERTICAL TAB" },
    { 0x000c, "FORM FEED" },
    { 0x000d, "CARRIAGE RETURN" },
    { 0x001b, "ESCAPE" },
    { 0x007f, "DELETE" },
    { 0x0085, "NEXT LINE" },
    { 0x00a0, "NO-BREAK SPACE" },
    { 0x00ad, "SOFT HYPHEN" },
    { 0x2009, "THIN SPACE" },
    { 0x200b, "ZERO WIDTH SPACE" },
    { 0x200c, "ZERO WIDTH NON-JOINER" },
    { 0x200d, "ZERO WIDTH JOINER" },
    { 0x200e, "LEFT-TO-RIGHT MARK" },
    { 0x200f, "RIGHT-TO-LEFT MARK" },
    { 0x2028, "LINE SEPARATOR" },
    { 0x2029, "PARAGRAPH SEPARATOR" },
    { 0x202d, "LEFT-TO-RIGHT OVERRIDE" },
    { 0x202e, "RIGHT-TO-LEFT OVERRIDE" },
    { 0x202f, "NARROW NO-BREAK SPACE" },
    { 0x2060, "WORD JOINER" },
    { 0x3000, "IDEOGRAPHIC SPACE" },
    { 0xfeff, "BYTE ORDER MARK" },
    { DWS_UNREADABLE, "REPLACEMENT CHARACTER" },
};

uint32_t dws_character (const char *s, const char *end, size_t *len)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    unsigned char first = *s;
    size_t n = first < 0x80 ? 1
               : (first & 0xe0) == 0xc0 ? 2
               : (first & 0xf0) == 0xe0 ? 3
               : (first & 0xf8) == 0xf0 ? 4 : 0;
    uint32_t c = n == 1 ? first : first & (0x7f >> n);

    *len = 1;
    if (n == 0 || (size_t)(end - s) < n)
        return DWS_UNREADABLE;
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return DWS_UNREADABLE;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return DWS_UNREADABLE;
    *len = n;
    return c;
}

static bool is_in (const struct range *ranges, size_t count, uint32_t c)
{
    for (size_t i = 0; i < count; i++) {
        if (c <= ranges[i].last)
            return c >= ranges[i].first;
    }
    return false;
}

bool dws_is_hidden (uint32_t c)
{
    return is_in (hidden, sizeof (hidden) / sizeof (hidden[0]), c);
}

bool dws_is_unseen (uint32_t c)
{
    return dws_is_hidden (c)
           || is_in (spaces, sizeof (spaces) / sizeof (spaces[0]), c)
           || c == DWS_UNREADABLE;
}

bool dws_ends_line (uint32_t c)
{
    return (c >= '\n' && c <= '\r') || c == 0x85 || c == 0x2028 || c == 0x2029;
}

void dws_unseen_name (uint32_t c, char *buf, size_t size)
{
    const char *name = "";

    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++) {
        if (names[i].c == c)
            name = names[i].name;
    }
    snprintf (buf, size, "U+%04X%s%s", (unsigned int)c, *name ? " " : "", name);
}

void dws_unseen_shown (const char *s, size_t len, char *buf, size_t size)
{
    const char *end = s + len;
    size_t used = 0;

    while (s < end) {
        char shown[16];
        size_t n;
        uint32_t c = dws_character (s, end, &n);

        if (dws_is_unseen (c))
            snprintf (shown, sizeof (shown), "<U+%04X>", (unsigned int)c);
        else
            snprintf (shown, sizeof (shown), "%.*s", (int)n, s);
        if (used + strlen (shown) >= size)
            break;
        strcpy (buf + used, shown);
        used += strlen (shown);
        s += n;
    }
    buf[used] = '\0';
}

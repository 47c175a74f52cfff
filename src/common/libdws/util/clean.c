/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See clean.h.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clean.h"
#include "unseen.h"

static bool is_blank (uint32_t c)
{
    return c == '\t' || c == '\n' || c == '\r';
}

const char *dws_clean (const char *text, char *buf, size_t size)
{
    static const char replacement[] = "\xef\xbf\xbd";
    const char *s = text;
    const char *end = s + strlen (s);
    size_t n = 0;

    while (s < end) {
        const char *shown = s;
        size_t len;
        uint32_t c = dws_character (s, end, &len);
        size_t width = len;

        if (c == DWS_UNREADABLE && len == 1) {
            s++;
            continue;
        }
        if (is_blank (c))
            shown = " ";
        else if (dws_is_hidden (c)) {
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

void dws_say (struct dws_text *t, const char *fmt, ...)
{
    char part[t->size];
    va_list ap;
    int n;

    va_start (ap, fmt);
    n = vsnprintf (part, sizeof (part), fmt, ap);
    va_end (ap);
    if (n > 0)
        t->len += strlen (dws_clean (part, t->buf + t->len, t->size - t->len));
}

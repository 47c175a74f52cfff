/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See error.h.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "clean.h"
#include "error.h"
#include "unseen.h"

void dws_trim_utf8 (char *s, size_t len)
{
    size_t start = len;

    while (start > 0 && ((unsigned char)s[start - 1] & 0xc0) == 0x80)
        start--;
    if (start > 0 && ((unsigned char)s[start - 1] & 0xc0) == 0xc0)
        s[start - 1] = '\0';
}

void dws_whole_utf8 (char *s)
{
    const char *end = s + strlen (s);
    char *to = s;

    while (s < end) {
        size_t len;

        if (dws_character (s, end, &len) == DWS_UNREADABLE && len == 1)
            s++;
        else {
            memmove (to, s, len);
            to += len;
            s += len;
        }
    }
    *to = '\0';
}

int dws_error (dws_error_t *error, int errnum, const char *fmt, ...)
{
    if (error) {
        char buf[sizeof (error->text)];
        va_list ap;
        int n;

        va_start (ap, fmt);
        n = vsnprintf (buf, sizeof (buf), fmt, ap);
        va_end (ap);
        dws_clean (n < 0 ? "" : buf, error->text, sizeof (error->text));
    }
    errno = errnum;
    return -1;
}

int dws_error_nomem (dws_error_t *error)
{
    return dws_error (error, ENOMEM, "out of memory");
}

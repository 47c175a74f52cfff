/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See error.h.
 */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "error.h"

void dws_trim_utf8 (char *s, size_t len)
{
    size_t start = len;

    while (start > 0 && ((unsigned char)s[start - 1] & 0xc0) == 0x80)
        start--;
    if (start > 0 && ((unsigned char)s[start - 1] & 0xc0) == 0xc0)
        s[start - 1] = '\0';
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
        if (n < 0)
            buf[0] = '\0';
        else if ((size_t)n >= sizeof (buf))
            dws_trim_utf8 (buf, sizeof (buf) - 1);
        memcpy (error->text, buf, sizeof (buf));
    }
    errno = errnum;
    return -1;
}

int dws_error_nomem (dws_error_t *error)
{
    return dws_error (error, ENOMEM, "out of memory");
}

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

void dws_trim_utf8 (char *s, size_t len)
{
    size_t start = len;

    while (start > 0 && ((unsigned char)s[start - 1] & 0xc0) == 0x80)
        start--;
    if (start > 0 && ((unsigned char)s[start - 1] & 0xc0) == 0xc0)
        s[start - 1] = '\0';
}

/* The length of the UTF-8 sequence that 's' begins with, 0 if it is not whole.
 */
static size_t character (const unsigned char *s)
{
    size_t len = *s < 0x80 ? 1
                 : (*s & 0xe0) == 0xc0 ? 2
                 : (*s & 0xf0) == 0xe0 ? 3
                 : (*s & 0xf8) == 0xf0 ? 4 : 0;

    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    return len;
}

void dws_whole_utf8 (char *s)
{
    char *to = s;

    while (*s) {
        size_t len = character ((unsigned char *)s);

        if (len == 0)
            s++;
        for (size_t i = 0; i < len; i++)
            *to++ = *s++;
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

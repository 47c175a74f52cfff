/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * How libdws reports failure: errno for the program, one line of text for
 * the person. The function that finds the fault sets both.
 */

#ifndef LIBDWS_ERROR_H
#define LIBDWS_ERROR_H

#include <stddef.h>

typedef struct {
    char text[512];
} dws_error_t;

/* Fill 'error' (may be NULL) with a formatted line, cut to fit, and set errno to
 * 'errnum'. The line is cleaned (clean.h), as words of users and of Kubernetes are
 * in it. Always returns -1, so that a function
 * can fail with "return dws_error (e, EINVAL, ...)". Arguments may point into
 * 'error' itself.
 */
int dws_error (dws_error_t *error, int errnum, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* Drop the end of a UTF-8 sequence that was cut off when 's' was cut at 'len':
 * such a text cannot go into JSON.
 */
void dws_trim_utf8 (char *s, size_t len);

/* Drop all parts of UTF-8 sequences that were cut, wherever they are in 's'.
 */
void dws_whole_utf8 (char *s);

/* The same as dws_error() for lack of memory: ENOMEM.
 */
int dws_error_nomem (dws_error_t *error);

#endif /* !LIBDWS_ERROR_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Text from users and from Kubernetes, made fit for a log, an eventlog and a
 * terminal: one line that looks like what it says.
 *
 * Not shown are control characters (U+0000..1F, U+007F..9F), format characters
 * (Unicode category Cf: those that turn the direction of text, and those
 * without width, among them) and the separators of lines and paragraphs. Each
 * becomes U+FFFD; tab, line feed and carriage return become a blank.
 * flux_k8s/texts.py has the same table for Python.
 */

#ifndef LIBDWS_CLEAN_H
#define LIBDWS_CLEAN_H

#include <stddef.h>

/* Copy 'text' to 'buf', cleaned, and cut to fit 'size' (1 or more) between two
 * characters. Bytes that are not UTF-8 are dropped, so that the result can go
 * into JSON. Returns 'buf', which must not overlap 'text'.
 */
const char *dws_clean (const char *text, char *buf, size_t size);

/* The same at full length: the caller frees it. Returns NULL with errno ENOMEM.
 */
char *dws_clean_copy (const char *text);

/* A text that is put together in 'buf', cleaned.
 */
struct dws_text {
    char *buf;
    size_t size;
    size_t len;                 // of the text so far
};

void dws_say (struct dws_text *t, const char *fmt, ...)
    __attribute__ ((format (printf, 2, 3)));

#endif /* !LIBDWS_CLEAN_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The output of jgf.c: text on its way to the sink, in large pieces. In a
 * header because a graph is a hundred million bytes of small ones.
 */

#ifndef LIBDWS_JGF_PRIVATE_H
#define LIBDWS_JGF_PRIVATE_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "jgf.h"

#define OUT_SIZE (256 * 1024)

/* Collects output for the sink. After a failure everything is dropped.
 */
struct out {
    char *buf;
    size_t used;
    dws_jgf_sink_f sink;
    void *arg;
    int errnum;
};

static inline void out_flush (struct out *out)
{
    if (!out->errnum
        && out->used > 0
        && out->sink (out->arg, out->buf, out->used) < 0)
        out->errnum = errno ? errno : EIO;
    out->used = 0;
}

static inline void out_put (struct out *out, const char *s, size_t len)
{
    while (out->used + len > OUT_SIZE) {
        size_t part = OUT_SIZE - out->used;

        memcpy (out->buf + out->used, s, part);
        out->used += part;
        s += part;
        len -= part;
        out_flush (out);
    }
    memcpy (out->buf + out->used, s, len);
    out->used += len;
}

#define PUT(out, literal) out_put ((out), (literal), sizeof (literal) - 1)

/* Decimal digits at the end of 'buf'; returns their start.
 */
static inline char *out_digits (char buf[24], uint64_t n, size_t *len)
{
    char *end = buf + 24;
    char *s = end;

    do {
        *--s = '0' + n % 10;
        n /= 10;
    } while (n > 0);
    *len = end - s;
    return s;
}

static inline void out_number (struct out *out, uint64_t n)
{
    char buf[24];
    size_t len;
    char *s = out_digits (buf, n, &len);

    out_put (out, s, len);
}

#endif /* !LIBDWS_JGF_PRIVATE_H */

/* SPDX-License-Identifier: LGPL-3.0-only */
/* base64.h - RFC 4648 base64 with padding, for the payloads that carry raw
 * bytes within JSON (KVS values, published events).
 */
#ifndef SOLO_BASE64_H
#define SOLO_BASE64_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Encode into a new string, which the caller frees.
 */
static inline char *base64_encode (const void *data, size_t len)
{
    const uint8_t *in = data;
    char *out;
    char *p;

    if (!(p = out = malloc ((len + 2) / 3 * 4 + 1)))
        return NULL;
    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t x = in[i] << 16
                     | (n > 1 ? in[i + 1] << 8 : 0)
                     | (n > 2 ? in[i + 2] : 0);
        *p++ = base64_digits[x >> 18];
        *p++ = base64_digits[x >> 12 & 63];
        *p++ = n > 1 ? base64_digits[x >> 6 & 63] : '=';
        *p++ = n > 2 ? base64_digits[x & 63] : '=';
    }
    *p = '\0';
    return out;
}

static inline int base64_digit (char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decode into a new buffer, which the caller frees; one NUL byte follows the
 * data.  Fails with EPROTO if 's' is not base64.
 */
static inline int base64_decode (const char *s, void **datap, size_t *lenp)
{
    size_t n = strlen (s);
    size_t pad = 0;
    uint8_t *out;
    size_t len = 0;
    uint32_t x = 0;

    while (pad < 2 && n > pad && s[n - 1 - pad] == '=')
        pad++;
    if (n % 4 != 0) {
        errno = EPROTO;
        return -1;
    }
    if (!(out = malloc (n / 4 * 3 + 1)))
        return -1;
    for (size_t i = 0; i < n; i++) {
        int d = i >= n - pad ? 0 : base64_digit (s[i]);
        if (d < 0) {
            free (out);
            errno = EPROTO;
            return -1;
        }
        x = x << 6 | d;
        if (i % 4 == 3) {
            out[len++] = x >> 16;
            out[len++] = x >> 8;
            out[len++] = x;
        }
    }
    len -= pad;
    out[len] = '\0';
    *datap = out;
    *lenp = len;
    return 0;
}

#endif // !SOLO_BASE64_H

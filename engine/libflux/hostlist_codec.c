/* SPDX-License-Identifier: LGPL-3.0-only */
/* hostlist_codec.c - hostlists as text (RFC 29): prefix[ids]suffix, separated
 * by commas or blanks.  Leading zeros of an id or a range are kept.
 */

#include "libutil/errno_safe.h"
#include "hostlist_private.h"

#define SEPARATORS "\t, "
#define MAX_RANGE (1ul << 20)

/* Encode */

static bool same_group (const struct range *a, const struct range *b)
{
    return !a->single && !b->single && a->prefix_len == b->prefix_len
           && !memcmp (a->prefix, b->prefix, a->prefix_len);
}

static void encode_ids (FILE *f, const struct range *r)
{
    fprintf (f, "%0*lu", r->width, r->lo);
    if (r->hi > r->lo)
        fprintf (f, "-%0*lu", r->width, r->hi);
}

char *hostlist_encode (struct hostlist *hl)
{
    char *buf = NULL;
    size_t size;
    FILE *f;
    int end;

    if (!hl) {
        errno = EINVAL;
        return NULL;
    }
    if (!(f = open_memstream (&buf, &size)))
        return NULL;
    for (int i = 0; i < hl->nranges; i = end) {
        const struct range *r = &hl->ranges[i];
        bool brackets;

        for (end = i + 1; end < hl->nranges; end++) {
            if (!same_group (r, &hl->ranges[end]))
                break;
        }
        brackets = end - i > 1 || range_count (r) > 1;
        fprintf (f, "%s%s%s", i > 0 ? "," : "", r->prefix, brackets ? "[" : "");
        for (int j = i; j < end && !r->single; j++) {
            if (j > i)
                fputc (',', f);
            encode_ids (f, &hl->ranges[j]);
        }
        if (brackets)
            fputc (']', f);
    }
    if (fclose (f) != 0) {
        free (buf);
        return NULL;
    }
    return buf;
}

/* Decode */

/* Parse digits up to end.  Text and value give the width. */
static int parse_number (const char *s, const char *end, unsigned long *n,
                         int *width)
{
    if (s == end) {
        errno = EINVAL;
        return -1;
    }
    *width = s[0] == '0' && end - s > 1 ? end - s : 0;
    for (*n = 0; s < end; s++) {
        if (*s < '0' || *s > '9') {
            errno = EINVAL;
            return -1;
        }
        if (*n > (~0ul - 9) / 10) {
            errno = ERANGE;
            return -1;
        }
        *n = *n * 10 + (*s - '0');
    }
    return 0;
}

static int parse_ids (const char *s, const char *end, struct range *r)
{
    const char *dash = memchr (s, '-', end - s);
    int width;

    if (parse_number (s, dash ? dash : end, &r->lo, &r->width) < 0)
        return -1;
    r->hi = r->lo;
    if (dash && parse_number (dash + 1, end, &r->hi, &width) < 0)
        return -1;
    if (r->hi < r->lo || r->hi - r->lo >= MAX_RANGE) {
        errno = r->hi < r->lo ? EINVAL : ERANGE;
        return -1;
    }
    return 0;
}

/* With a suffix, each host is a single name. */
static int push_with_suffix (struct hostlist *hl, const struct range *r,
                             const char *suffix)
{
    for (unsigned long n = r->lo; n <= r->hi; n++) {
        struct range host = { .single = true };
        int len = asprintf (&host.prefix, "%s%0*lu%s", r->prefix, r->width, n,
                            suffix);
        int rc;

        if (len < 0)
            return -1;
        host.prefix_len = len;
        rc = hostlist_push (hl, &host);
        free (host.prefix);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* prefix[ids]suffix */
static int decode_bracketed (struct hostlist *hl, char *s, char *open)
{
    char *close = strchr (open, ']');
    char *suffix, *ids, *end;
    struct range r = { .prefix = s, .prefix_len = open - s };

    if (!close) {
        errno = EINVAL;
        return -1;
    }
    *open = *close = '\0';
    suffix = close + 1;
    for (ids = open + 1; ids <= close; ids = end + 1) {
        end = ids + strcspn (ids, ",");
        if (parse_ids (ids, end, &r) < 0)
            return -1;
        if ((*suffix ? push_with_suffix (hl, &r, suffix)
                     : hostlist_push (hl, &r)) < 0)
            return -1;
    }
    return 0;
}

/* One name; a number at its end is what may join it to others. */
static int decode_host (struct hostlist *hl, char *s)
{
    size_t len = strlen (s);
    size_t prefix_len = len;
    struct range r = { .prefix = s };
    char *digits;
    int rc;

    while (prefix_len > 0 && s[prefix_len - 1] >= '0'
           && s[prefix_len - 1] <= '9')
        prefix_len--;
    digits = s + prefix_len;
    if (*digits && parse_number (digits, s + len, &r.lo, &r.width) == 0) {
        char first = *digits;
        r.hi = r.lo;
        r.prefix_len = prefix_len;
        *digits = '\0';
        rc = hostlist_push (hl, &r);
        *digits = first;
        return rc;
    }
    r.single = true;
    r.prefix_len = len;
    return hostlist_push (hl, &r);
}

static int decode_token (struct hostlist *hl, char *s)
{
    char *open = strchr (s, '[');

    if (open)
        return decode_bracketed (hl, s, open);
    if (strchr (s, ']')) {
        errno = EINVAL;
        return -1;
    }
    return decode_host (hl, s);
}

/* Cut the next token off *sp; separators within brackets are part of it. */
static char *next_token (char **sp)
{
    char *token = *sp + strspn (*sp, SEPARATORS);
    char *s;
    int level = 0;

    if (!*token)
        return NULL;
    for (s = token; *s && (level != 0 || !strchr (SEPARATORS, *s)); s++)
        level += (*s == '[') - (*s == ']');
    if (*s)
        *s++ = '\0';
    *sp = s;
    return token;
}

struct hostlist *hostlist_decode (const char *s)
{
    struct hostlist *hl;
    char *buf, *p, *token;

    if (!s) {
        errno = EINVAL;
        return NULL;
    }
    if (!(p = buf = strdup (s)))
        return NULL;
    if ((hl = hostlist_create ())) {
        while ((token = next_token (&p))) {
            if (decode_token (hl, token) < 0) {
                hostlist_destroy (hl);
                hl = NULL;
                break;
            }
        }
    }
    {
        ERRNO_SAFE (free (buf));
    }
    return hl;
}

/* SPDX-License-Identifier: LGPL-3.0-only */
/* idset_codec.c - idsets as text (RFC 22): ids and ranges in ascending order,
 * separated by commas, maybe in brackets.
 */

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <flux/idset.h>

static int __attribute__ ((format (printf, 3, 4)))
fail (idset_error_t *errp, int errnum, const char *fmt, ...)
{
    va_list ap;

    if (errp) {
        va_start (ap, fmt);
        vsnprintf (errp->text, sizeof (errp->text), fmt, ap);
        va_end (ap);
    }
    errno = errnum;
    return -1;
}

static const char *reason (int errnum)
{
    return errnum == ERANGE ? "set universe size would exceed maximum"
                            : strerror (errnum);
}

/* Encode */

char *idset_encode (const struct idset *idset, int flags)
{
    unsigned int lo, hi;
    size_t size = 0;
    char *buf = NULL;
    bool many = idset_count (idset) > 1;
    const char *sep = "";
    FILE *f;

    if (!idset || (flags & ~(IDSET_FLAG_BRACKETS | IDSET_FLAG_RANGE))) {
        errno = EINVAL;
        return NULL;
    }
    if (!(f = open_memstream (&buf, &size)))
        return NULL;
    if (many && (flags & IDSET_FLAG_BRACKETS))
        fputc ('[', f);
    for (lo = idset_first (idset); lo != IDSET_INVALID_ID;
         lo = idset_next (idset, hi)) {
        hi = lo;
        if (flags & IDSET_FLAG_RANGE) {
            while (idset_test (idset, hi + 1))
                hi++;
        }
        fprintf (f, "%s%u", sep, lo);
        if (hi > lo)
            fprintf (f, "-%u", hi);
        sep = ",";
    }
    if (many && (flags & IDSET_FLAG_BRACKETS))
        fputc (']', f);
    if (fclose (f) != 0) {
        free (buf);
        errno = ENOMEM;
        return NULL;
    }
    return buf;
}

/* Decode */

static int parse_id (const char **sp, unsigned int *id)
{
    const char *s = *sp;
    uint64_t n = 0;

    if (!isdigit ((unsigned char)*s)
        || (s[0] == '0' && isdigit ((unsigned char)s[1])))
        return -1;
    for (; isdigit ((unsigned char)*s); s++) {
        n = n * 10 + (*s - '0');
        if (n >= IDSET_INVALID_ID)
            return -1;
    }
    *id = n;
    *sp = s;
    return 0;
}

static int parse_range (const char *s, unsigned int *lo, unsigned int *hi)
{
    if (parse_id (&s, lo) < 0)
        return -1;
    *hi = *lo;
    if (*s == '-') {
        s++;
        if (parse_id (&s, hi) < 0 || *hi <= *lo)
            return -1;
    }
    return *s ? -1 : 0;
}

/* What decoding is for: fill or clear idset, or without one just count. */
struct decode {
    struct idset *idset;
    bool subtract;
    size_t count;
    unsigned int maxid;
};

static int decode_element (struct decode *d, const char *s,
                           idset_error_t *errp)
{
    unsigned int lo, hi;
    int rc = 0;

    if (parse_range (s, &lo, &hi) < 0)
        return fail (errp, EINVAL, "error parsing range '%s'", s);
    if (d->maxid != IDSET_INVALID_ID && lo <= d->maxid)
        return fail (errp, EINVAL, "range '%s' is out of order", s);
    if (d->idset && d->subtract)
        rc = idset_range_clear (d->idset, lo, hi);
    else if (d->idset)
        rc = idset_range_set (d->idset, lo, hi);
    if (rc < 0)
        return fail (errp, errno, "error %s '%s': %s",
                     d->subtract ? "clearing" : "appending", s,
                     reason (errno));
    d->count += (size_t)hi - lo + 1;
    d->maxid = hi;
    return 0;
}

/* The text within brackets, which come in one pair around all or not at all. */
static char *strip (char *s, idset_error_t *errp)
{
    size_t n = strlen (s);

    if (n >= 2 && s[0] == '[' && s[n - 1] == ']') {
        s[n - 1] = '\0';
        s++;
    }
    if (strpbrk (s, "[]")) {
        fail (errp, EINVAL, "mismatched or nested brackets");
        return NULL;
    }
    return s;
}

static int decode (struct decode *d, const char *s, ssize_t len,
                   idset_error_t *errp)
{
    char *buf, *p, *element, *saveptr = NULL;
    int rc = -1;

    d->maxid = IDSET_INVALID_ID;
    if (!s)
        return fail (errp, EINVAL, "input is NULL");
    if (!(buf = len < 0 ? strdup (s) : strndup (s, len)))
        return fail (errp, ENOMEM, "out of memory");
    if (!(p = strip (buf, errp)))
        goto done;
    while ((element = strtok_r (p, ",", &saveptr))) {
        if (decode_element (d, element, errp) < 0)
            goto done;
        p = NULL;
    }
    rc = 0;
    if (!d->subtract && d->maxid != IDSET_INVALID_ID
        && d->maxid >= IDSET_MAX_UNIVERSE)
        rc = fail (errp, ERANGE, "%s", reason (ERANGE));
done:
    free (buf);
    return rc;
}

int idset_decode_info (const char *s, ssize_t len, size_t *count,
                       unsigned int *maxid, idset_error_t *errp)
{
    struct decode d = { 0 };

    if (decode (&d, s, len, errp) < 0)
        return -1;
    if (count)
        *count = d.count;
    if (maxid)
        *maxid = d.maxid;
    return 0;
}

bool idset_decode_empty (const char *s, ssize_t len)
{
    size_t count;

    return idset_decode_info (s, len, &count, NULL, NULL) == 0 && count == 0;
}

int idset_decode_add (struct idset *idset, const char *s, ssize_t len,
                      idset_error_t *errp)
{
    struct decode d = { .idset = idset };

    return decode (&d, s, len, errp);
}

int idset_decode_subtract (struct idset *idset, const char *s, ssize_t len,
                           idset_error_t *errp)
{
    struct decode d = { .idset = idset, .subtract = true };

    return decode (&d, s, len, errp);
}

struct idset *idset_decode_ex (const char *s, ssize_t len, ssize_t size,
                               int flags, idset_error_t *errp)
{
    struct idset *idset;
    unsigned int maxid;

    if (size < 0) {
        if (idset_decode_info (s, len, NULL, &maxid, errp) < 0)
            return NULL;
        if (maxid != IDSET_INVALID_ID)
            size = (ssize_t)maxid + 1;
        else if (flags & IDSET_FLAG_AUTOGROW)
            size = 1;
        else {
            fail (errp, EINVAL, "cannot create an empty idset");
            return NULL;
        }
    }
    if (!(idset = idset_create (size, flags))) {
        fail (errp, errno, "error creating idset object: %s", reason (errno));
        return NULL;
    }
    if (idset_decode_add (idset, s, len, errp) < 0) {
        idset_destroy (idset);
        return NULL;
    }
    return idset;
}

struct idset *idset_decode (const char *s)
{
    return idset_decode_ex (s, -1, 0, IDSET_FLAG_AUTOGROW, NULL);
}

struct idset *idset_ndecode (const char *s, size_t len)
{
    return idset_decode_ex (s, len, 0, IDSET_FLAG_AUTOGROW, NULL);
}

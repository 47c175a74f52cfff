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

#include "common/va.h"

static int __attribute__ ((format (printf, 3, 4)))
fail (idset_error_t *errp, int errnum, const char *fmt, ...)
{
    if (errp) {
        VA_DO (fmt, vsnprintf (errp->text, sizeof (errp->text), fmt, ap));
    }
    errno = errnum;
    return -1;
}

static const char *reason (int errnum)
{
    return errnum == ERANGE ? "a number is too large for the set"
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

/* last is that of the element before, or IDSET_INVALID_ID. */
static int decode_element (struct idset *idset, const char *s,
                           unsigned int *last, idset_error_t *errp)
{
    unsigned int lo, hi;

    if (parse_range (s, &lo, &hi) < 0)
        return fail (errp, EINVAL, "error parsing range '%s'", s);
    if (*last != IDSET_INVALID_ID && lo <= *last)
        return fail (errp, EINVAL, "range '%s' is out of order", s);
    if (idset_range_set (idset, lo, hi) < 0)
        return fail (errp, errno, "error appending '%s': %s", s,
                     reason (errno));
    *last = hi;
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

int idset_decode_add (struct idset *idset, const char *s, ssize_t len,
                      idset_error_t *errp)
{
    char *buf, *p, *element, *saveptr = NULL;
    unsigned int last = IDSET_INVALID_ID;
    int rc = -1;

    if (!s)
        return fail (errp, EINVAL, "input is NULL");
    if (!(buf = len < 0 ? strdup (s) : strndup (s, len)))
        return fail (errp, ENOMEM, "out of memory");
    if (!(p = strip (buf, errp)))
        goto done;
    while ((element = strtok_r (p, ",", &saveptr))) {
        if (decode_element (idset, element, &last, errp) < 0)
            goto done;
        p = NULL;
    }
    rc = 0;
    if (last != IDSET_INVALID_ID && last >= IDSET_MAX_UNIVERSE)
        rc = fail (errp, ERANGE, "%s", reason (ERANGE));
done:
    free (buf);
    return rc;
}

struct idset *idset_decode (const char *s)
{
    struct idset *idset = idset_create (0, IDSET_FLAG_AUTOGROW);

    if (idset && idset_decode_add (idset, s, -1, NULL) < 0) {
        idset_destroy (idset);
        return NULL;
    }
    return idset;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See lists.h.
 */

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "bounds.h"
#include "lists.h"

#define STRINGIFY(n) #n
#define TEXT_OF(n) STRINGIFY (n)

/* Read the number at *s and advance *s. Digits after the first 17 are skipped: no valid
 * number is so long.
 */
static uint64_t take_number (const char **s)
{
    uint64_t n = 0;

    for (; isdigit ((unsigned char)**s); ++*s) {
        if (n < UINT64_C (10000000000000000))
            n = n * 10 + (**s - '0');
    }
    return n;
}

static size_t at_most (uint64_t n)
{
    return n > DWS_MAX_HOSTS ? DWS_MAX_HOSTS + 1 : n;
}

/* Count the ids between the brackets at *s, and advance *s. Any number will do for a
 * malformed list, which cannot be decoded.
 */
static size_t count_ids (const char **s)
{
    uint64_t count = 0;

    while (**s && **s != ']') {
        uint64_t low;
        uint64_t high;

        ++*s;
        low = high = take_number (s);
        if (**s == '-') {
            ++*s;
            high = take_number (s);
        }
        *s += strcspn (*s, ",]");
        count = at_most (count + (high >= low ? high - low + 1 : 1));
    }
    if (**s)
        ++*s;
    return count;
}

/* Returns the number of hosts; *longest is that of the bytes of a name, without its
 * number.
 */
static size_t measure (const char *s, size_t *longest)
{
    uint64_t total = 0;

    *longest = 0;
    while (*s) {
        uint64_t hosts = 1;
        size_t bytes = 0;

        s += strspn (s, ", \t");
        if (!*s)
            break;
        while (*s && !strchr (", \t", *s)) {
            if (*s == '[')
                hosts = at_most (hosts * count_ids (&s));
            else {
                bytes++;
                s++;
            }
        }
        total = at_most (total + hosts);
        if (bytes > *longest)
            *longest = bytes;
    }
    return total;
}

size_t dws_hostlist_named (const char *s)
{
    size_t longest;

    return measure (s, &longest);
}

static int check_hosts (const char *s)
{
    size_t longest = 0;

    errno = EINVAL;
    if (!s)
        return -1;
    if (measure (s, &longest) > DWS_MAX_HOSTS) {
        errno = E2BIG;
        return -1;
    }
    return longest > DWS_MAX_HOST_NAME ? -1 : 0;
}

struct hostlist *dws_hostlist_decode (const char *s)
{
    struct hostlist *hl;

    if (check_hosts (s) < 0)
        return NULL;
    if (!(hl = hostlist_decode (s)) && errno != ENOMEM)
        errno = EINVAL;
    return hl;
}

int dws_hostlist_append (struct hostlist *hl, const char *s)
{
    int count;

    if (check_hosts (s) < 0)
        return -1;
    if ((count = hostlist_append (hl, s)) < 0 && errno != ENOMEM)
        errno = EINVAL;
    return count;
}

const char *dws_hostlist_fault (int errnum)
{
    return errnum == E2BIG
        ? "names more than " TEXT_OF (DWS_MAX_HOSTS) " hosts"
        : "is not a hostlist";
}

static int fail (int errnum)
{
    errno = errnum;
    return -1;
}

/* A number without leading zeros.
 */
static int parse_id (const char **s, uint64_t *id)
{
    if (!isdigit ((unsigned char)**s)
        || (**s == '0' && isdigit ((unsigned char)(*s)[1])))
        return fail (EINVAL);
    *id = take_number (s);
    return 0;
}

int dws_idset_decode_add (struct idset *ids, const char *s, unsigned int below)
{
    const char *end = s ? s + strlen (s) : NULL;
    uint64_t next = 0;      // the least that may come
    uint64_t low;
    uint64_t high;

    if (!s)
        return fail (EINVAL);
    if (end - s >= 2 && *s == '[' && end[-1] == ']') {
        s++;
        end--;
    }
    while (s < end) {
        if (*s == ',') {
            s++;
            continue;
        }
        if (parse_id (&s, &low) < 0)
            return -1;
        high = low;
        if (*s == '-') {
            s++;
            if (parse_id (&s, &high) < 0)
                return -1;
            if (high <= low)
                return fail (EINVAL);
        }
        if ((s < end && *s != ',') || low < next)
            return fail (EINVAL);
        next = high + 1;
        if (low < below
            && idset_range_set (ids, low, high < below ? high : below - 1) < 0)
            return -1;
    }
    return 0;
}

struct idset *dws_idset_decode (const char *s, unsigned int below)
{
    struct idset *ids;

    if (!(ids = idset_create (0, IDSET_FLAG_AUTOGROW)))
        return NULL;
    if (dws_idset_decode_add (ids, s, below) < 0) {
        ERRNO_SAFE (idset_destroy (ids));
        return NULL;
    }
    return ids;
}

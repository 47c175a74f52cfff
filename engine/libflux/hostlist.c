/* SPDX-License-Identifier: LGPL-3.0-only */
/* hostlist.c - hostlists: ranges, cursor, find, delete, sort. */

#include "libutil/errno_safe.h"
#include "hostlist_private.h"

struct hostlist_hostname {
    size_t len;
    char name[];
};

static int fail (int errnum)
{
    errno = errnum;
    return -1;
}

/* Ranges */

/* How many digits n has at least. */
static int range_digits (unsigned long n)
{
    int digits = 1;

    while (n /= 10)
        digits++;
    return digits;
}

unsigned long range_count (const struct range *r)
{
    return r->single ? 1 : r->hi - r->lo + 1;
}

static int compare_prefix (const struct range *a, const struct range *b)
{
    size_t len = a->prefix_len < b->prefix_len ? a->prefix_len : b->prefix_len;
    int rc = memcmp (a->prefix, b->prefix, len);

    if (rc == 0)
        rc = (a->prefix_len > b->prefix_len) - (a->prefix_len < b->prefix_len);
    return rc != 0 ? rc : b->single - a->single;
}

/* Two ranges of one prefix can be one list, all names staying the same; if
 * so, width is set to what fits both.
 */
static bool range_compatible (const struct range *a, const struct range *b,
                              int *width)
{
    if (compare_prefix (a, b) != 0)
        return false;
    if (a->width != b->width
        && !(a->width == 0 && range_digits (a->lo) >= b->width)
        && !(b->width == 0 && range_digits (b->lo) >= a->width))
        return false;
    if (width)
        *width = a->width > b->width ? a->width : b->width;
    return true;
}

/* Where in r the name is, or -1. */
static long range_find (const struct range *r, const char *name, size_t len)
{
    unsigned long n = 0;
    size_t digits = len - r->prefix_len;

    if (len < r->prefix_len || memcmp (name, r->prefix, r->prefix_len) != 0)
        return -1;
    if (r->single)
        return digits == 0 ? 0 : -1;
    if (digits == 0 || digits > 19)
        return -1;
    for (const char *s = name + r->prefix_len; *s; s++) {
        if (*s < '0' || *s > '9')
            return -1;
        n = n * 10 + (*s - '0');
    }
    if (n < r->lo || n > r->hi)
        return -1;
    if (digits != (size_t)(r->width ? r->width : 0)
        && (digits != (size_t)range_digits (n) || (int)digits < r->width))
        return -1;
    return n - r->lo;
}

/* Lists */

struct hostlist *hostlist_create (void)
{
    return calloc (1, sizeof (struct hostlist));
}

static void set_cursor (struct hostlist *hl, int index, unsigned long depth)
{
    free (hl->text);
    hl->text = NULL;
    hl->index = index;
    hl->depth = depth;
    hl->removed = false;
}

static void clear (struct hostlist *hl)
{
    for (int i = 0; i < hl->nranges; i++)
        free (hl->ranges[i].prefix);
    free (hl->ranges);
    hl->ranges = NULL;
    hl->size = hl->nranges = hl->nhosts = 0;
    set_cursor (hl, 0, 0);
}

void hostlist_destroy (struct hostlist *hl)
{
    if (hl) {
        ERRNO_SAFE_BLOCK;
        clear (hl);
        free (hl);
    }
}

/* Make room for a copy of r at that place. */
static int insert (struct hostlist *hl, int index, const struct range *r)
{
    char *prefix;

    if (hl->nranges == hl->size) {
        int size = hl->size ? 2 * hl->size : 16;
        struct range *ranges = realloc (hl->ranges, size * sizeof (*ranges));
        if (!ranges)
            return -1;
        hl->ranges = ranges;
        hl->size = size;
    }
    if (!(prefix = strdup (r->prefix)))
        return -1;
    memmove (hl->ranges + index + 1, hl->ranges + index,
             (hl->nranges - index) * sizeof (*hl->ranges));
    hl->ranges[index] = *r;
    hl->ranges[index].prefix = prefix;
    hl->nranges++;
    return 0;
}

int hostlist_push (struct hostlist *hl, const struct range *r)
{
    struct range *last = hl->nranges ? &hl->ranges[hl->nranges - 1] : NULL;
    int width;

    if (last && !last->single && !r->single && last->hi + 1 == r->lo
        && range_compatible (last, r, &width)) {
        last->width = width;
        last->hi = r->hi;
    }
    else if (insert (hl, hl->nranges, r) < 0)
        return -1;
    hl->nhosts += range_count (r);
    return 0;
}

int hostlist_append_list (struct hostlist *hl1, struct hostlist *hl2)
{
    int before, nranges;

    if (!hl1 || !hl2)
        return fail (EINVAL);
    before = hl1->nhosts;
    nranges = hl2->nranges;     // may be the same list
    for (int i = 0; i < nranges; i++) {
        struct range r = hl2->ranges[i];
        if (hostlist_push (hl1, &r) < 0)
            return -1;
    }
    return hl1->nhosts - before;
}

struct hostlist *hostlist_copy (const struct hostlist *hl)
{
    struct hostlist *cpy;

    if (!hl || !(cpy = hostlist_create ()))
        return NULL;
    if (hostlist_append_list (cpy, (struct hostlist *)hl) < 0) {
        hostlist_destroy (cpy);
        return NULL;
    }
    return cpy;
}

int hostlist_append (struct hostlist *hl, const char *hosts)
{
    struct hostlist *tmp;
    int count;

    if (!hl)
        return fail (EINVAL);
    if (!hosts)
        return 0;
    if (!(tmp = hostlist_decode (hosts)))
        return -1;
    count = hostlist_append_list (hl, tmp);
    hostlist_destroy (tmp);
    return count;
}

int hostlist_count (struct hostlist *hl)
{
    return hl ? hl->nhosts : 0;
}

/* Cursor */

const char *hostlist_current (struct hostlist *hl)
{
    const struct range *r;

    if (!hl) {
        errno = EINVAL;
        return NULL;
    }
    if (hl->removed || hl->index >= hl->nranges)
        return NULL;
    r = &hl->ranges[hl->index];
    if (!hl->text) {
        int n = r->single ? asprintf (&hl->text, "%s", r->prefix)
                          : asprintf (&hl->text, "%s%0*lu", r->prefix,
                                      r->width, r->lo + hl->depth);
        if (n < 0)
            hl->text = NULL;
    }
    return hl->text;
}

static const char *seek (struct hostlist *hl, int index, unsigned long depth)
{
    set_cursor (hl, index, depth);
    return hostlist_current (hl);
}

const char *hostlist_first (struct hostlist *hl)
{
    if (!hl) {
        errno = EINVAL;
        return NULL;
    }
    errno = 0;
    return seek (hl, 0, 0);
}

const char *hostlist_next (struct hostlist *hl)
{
    if (!hl) {
        errno = EINVAL;
        return NULL;
    }
    errno = 0;
    if (hl->index >= hl->nranges)
        return seek (hl, hl->nranges, 0);
    if (hl->removed)
        return seek (hl, hl->index, hl->depth);
    if (hl->depth + 1 < range_count (&hl->ranges[hl->index]))
        return seek (hl, hl->index, hl->depth + 1);
    return seek (hl, hl->index + 1, 0);
}

/* Range and place in it of host number n. */
static void locate (struct hostlist *hl, unsigned long n, int *index,
                    unsigned long *depth)
{
    int i = 0;

    while (i < hl->nranges && n >= range_count (&hl->ranges[i]))
        n -= range_count (&hl->ranges[i++]);
    *index = i;
    *depth = i < hl->nranges ? n : 0;
}

const char *hostlist_nth (struct hostlist *hl, int n)
{
    unsigned long depth;
    int index;

    if (!hl || n < 0 || n >= hl->nhosts) {
        errno = hl && n >= 0 ? ENOENT : EINVAL;
        return NULL;
    }
    locate (hl, n, &index, &depth);
    return seek (hl, index, depth);
}

/* Find and delete */

struct hostlist_hostname *hostlist_hostname_create (const char *hostname)
{
    struct hostlist_hostname *hn;
    size_t len;

    if (!hostname || hostname[len = strcspn (hostname, ",[]\t ")]) {
        errno = EINVAL;
        return NULL;
    }
    if (!(hn = malloc (sizeof (*hn) + len + 1)))
        return NULL;
    hn->len = len;
    memcpy (hn->name, hostname, len + 1);
    return hn;
}

void hostlist_hostname_destroy (struct hostlist_hostname *hn)
{
    ERRNO_SAFE (free (hn));
}

static int find (struct hostlist *hl, const char *name, size_t len,
                 int *index, unsigned long *depth)
{
    long count = 0;

    for (int i = 0; i < hl->nranges; i++) {
        long pos = range_find (&hl->ranges[i], name, len);
        if (pos >= 0) {
            *index = i;
            *depth = pos;
            return count + pos;
        }
        count += range_count (&hl->ranges[i]);
    }
    return fail (ENOENT);
}

int hostlist_find_hostname (struct hostlist *hl, struct hostlist_hostname *hn)
{
    unsigned long depth;
    int index, n;

    if (!hl || !hn)
        return fail (EINVAL);
    if ((n = find (hl, hn->name, hn->len, &index, &depth)) >= 0)
        set_cursor (hl, index, depth);
    return n;
}

int hostlist_find (struct hostlist *hl, const char *hostname)
{
    struct hostlist_hostname *hn;
    int n;

    if (!hl)
        return fail (EINVAL);
    if (!(hn = hostlist_hostname_create (hostname)))
        return -1;
    n = hostlist_find_hostname (hl, hn);
    hostlist_hostname_destroy (hn);
    return n;
}

/* Take one host out; its range may shrink, go, or become two. */
static int take_out (struct hostlist *hl, int index, unsigned long depth)
{
    struct range *r = &hl->ranges[index];

    if (range_count (r) == 1) {
        free (r->prefix);
        hl->nranges--;
        memmove (r, r + 1, (hl->nranges - index) * sizeof (*r));
    }
    else if (depth == 0)
        r->lo++;
    else if (r->lo + depth == r->hi)
        r->hi--;
    else {
        struct range upper = *r;
        upper.lo = r->lo + depth + 1;
        if (insert (hl, index + 1, &upper) < 0)
            return -1;
        hl->ranges[index].hi = upper.lo - 2;
    }
    hl->nhosts--;
    return 0;
}

/* Where the cursor is, as the number of a host. */
static unsigned long cursor_number (struct hostlist *hl)
{
    unsigned long n = hl->depth;

    for (int i = 0; i < hl->index && i < hl->nranges; i++)
        n += range_count (&hl->ranges[i]);
    return n;
}

int hostlist_delete (struct hostlist *hl, const char *hosts)
{
    struct hostlist *tmp;
    const char *host;
    int count = 0;

    if (!hl || !hosts)
        return fail (EINVAL);
    if (!(tmp = hostlist_decode (hosts)))
        return -1;
    for (host = hostlist_first (tmp); host; host = hostlist_next (tmp)) {
        unsigned long cursor = cursor_number (hl);
        bool removed = hl->removed;
        unsigned long depth;
        int index, n;

        if ((n = find (hl, host, strlen (host), &index, &depth)) < 0)
            continue;
        if (take_out (hl, index, depth) < 0) {
            count = -1;
            break;
        }
        if ((unsigned long)n == cursor)
            removed = true;
        else if ((unsigned long)n < cursor)
            cursor--;
        set_cursor (hl, 0, 0);
        locate (hl, cursor, &hl->index, &hl->depth);
        hl->removed = removed;
        count++;
    }
    hostlist_destroy (tmp);
    return count;
}

/* Sort */

static int compare (const void *arg1, const void *arg2)
{
    const struct range *a = arg1;
    const struct range *b = arg2;
    int rc = compare_prefix (a, b);
    int awidth, bwidth;

    if (rc != 0)
        return rc;
    if (range_compatible (a, b, NULL))
        return (a->lo > b->lo) - (a->lo < b->lo);
    awidth = a->width ? a->width : range_digits (a->lo);
    bwidth = b->width ? b->width : range_digits (b->lo);
    return awidth - bwidth;
}

/* Push what a run of ranges that overlap holds, in order. */
static int push_merged (struct hostlist *hl, const struct range *run, int n,
                        bool uniq)
{
    struct range r = run[0];

    for (int i = 1; i < n; i++) {
        range_compatible (&r, &run[i], &r.width);
        if (run[i].hi > r.hi)
            r.hi = run[i].hi;
    }
    if (uniq || n == 1)
        return hostlist_push (hl, &r);
    for (unsigned long lo = r.lo, hi = r.hi; lo <= hi; lo++) {
        r.lo = r.hi = lo;
        for (int i = 0; i < n; i++) {
            if (run[i].lo <= lo && lo <= run[i].hi
                && hostlist_push (hl, &r) < 0)
                return -1;
        }
    }
    return 0;
}

static bool overlap (const struct range *run, unsigned long hi,
                     const struct range *r, bool uniq)
{
    if (!range_compatible (run, r, NULL))
        return false;
    return run->single ? uniq : r->lo <= hi;
}

/* Out of memory, the list stays as it was. */
static void sort (struct hostlist *hl, bool uniq)
{
    struct hostlist *sorted;
    struct hostlist tmp;
    int end;

    if (!hl || hl->nranges <= 1 || !(sorted = hostlist_create ()))
        return;
    qsort (hl->ranges, hl->nranges, sizeof (hl->ranges[0]), compare);
    for (int i = 0; i < hl->nranges; i = end) {
        unsigned long hi = hl->ranges[i].hi;
        for (end = i + 1; end < hl->nranges; end++) {
            if (!overlap (&hl->ranges[i], hi, &hl->ranges[end], uniq))
                break;
            if (hl->ranges[end].hi > hi)
                hi = hl->ranges[end].hi;
        }
        if (push_merged (sorted, &hl->ranges[i], end - i, uniq) < 0)
            goto done;
    }
    tmp = *hl;
    *hl = *sorted;
    *sorted = tmp;
done:
    hostlist_destroy (sorted);
}

void hostlist_sort (struct hostlist *hl)
{
    sort (hl, false);
}

void hostlist_uniq (struct hostlist *hl)
{
    sort (hl, true);
}

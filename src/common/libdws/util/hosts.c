/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See hosts.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "libutil/errno_safe.h"
#include "hosts.h"
#include "lists.h"

struct hostlist *hosts_list_create (dws_error_t *error)
{
    struct hostlist *hl;

    if (!(hl = hostlist_create ()))
        dws_error_nomem (error);
    return hl;
}

int hosts_list_append (struct hostlist *hl,
                       const char *hosts,
                       dws_error_t *error)
{
    if (dws_hostlist_append (hl, hosts) < 0)
        return dws_error (error, errno == ENOMEM ? ENOMEM : EINVAL,
                          "malformed hostlist '%s'", hosts);
    return 0;
}

char *hosts_list_finish (struct hostlist *hl, bool ok, dws_error_t *error)
{
    char *s = NULL;

    if (ok) {
        hostlist_uniq (hl);
        if (!(s = hostlist_encode (hl)))
            dws_error_nomem (error);
    }
    ERRNO_SAFE (hostlist_destroy (hl));
    return s;
}

json_t *hosts_list_constraint (struct hostlist *hl, dws_error_t *error)
{
    json_t *o = NULL;
    char *s;

    hostlist_sort (hl);
    if (!(s = hostlist_encode (hl))
        || !(o = json_pack ("{s:[s]}", "hostlist", s)))
        dws_error_nomem (error);
    ERRNO_SAFE (free (s));
    return o;
}

/* Is the text a single host, which decoding would not change?
 */
static bool is_one_host (const char *hosts)
{
    return *hosts && !strpbrk (hosts, "[], \t\n");
}

int hosts_walk_begin (struct hosts_walk *walk, const char *hosts)
{
    *walk = (struct hosts_walk){ .count = 1 };
    if (is_one_host (hosts))
        walk->one = hosts;
    else {
        if (!(walk->hl = dws_hostlist_decode (hosts)))
            return -1;
        walk->count = hostlist_count (walk->hl);
    }
    return 0;
}

const char *hosts_walk_next (struct hosts_walk *walk)
{
    const char *one = walk->one;

    walk->one = NULL;
    if (!walk->hl)
        return one;
    if (walk->begun)
        return hostlist_next (walk->hl);
    walk->begun = true;
    return hostlist_first (walk->hl);
}

void hosts_walk_end (struct hosts_walk *walk)
{
    ERRNO_SAFE (hostlist_destroy (walk->hl));
}

/* Check lists before joining: two malformed lists may join into a valid one.
 */
static bool is_balanced (const char *hosts)
{
    bool open = false;

    for (; *hosts; hosts++) {
        if (*hosts == (open ? '[' : ']'))
            return false;
        open = *hosts == '[' || (open && *hosts != ']');
    }
    return !open;
}

/* Join several lists into one text, to be decoded at once.
 */
static char *join_lists (const char *const *lists, size_t count)
{
    size_t size = 1;
    char *text;
    char *to;

    for (size_t i = 0; i < count; i++)
        size += strlen (lists[i]) + 1;
    if (!(text = to = malloc (size)))
        return NULL;
    *to = '\0';
    for (size_t i = 0; i < count; i++) {
        if (to > text && *lists[i])
            *to++ = ',';
        to = stpcpy (to, lists[i]);
    }
    return text;
}

char *dws_hosts_merge (const char *const *lists, size_t count,
                       dws_error_t *error)
{
    struct hostlist *hl = NULL;
    char *text;

    for (size_t i = 0; i < count; i++) {
        if (!is_balanced (lists[i])) {
            dws_error (error, EINVAL, "malformed hostlist '%.60s'", lists[i]);
            return NULL;
        }
    }
    if (!(text = join_lists (lists, count))) {
        dws_error_nomem (error);
        return NULL;
    }
    if (!*text || is_one_host (text))
        return text;
    if (!(hl = dws_hostlist_decode (text)))
        dws_error (error, errno == ENOMEM ? ENOMEM : EINVAL,
                   "malformed hostlist '%.60s'", text);
    ERRNO_SAFE (free (text));
    return hosts_list_finish (hl, hl != NULL, error);
}

char *dws_hosts_merge_json (json_t *lists, dws_error_t *error)
{
    size_t size = json_array_size (lists);
    const char **texts = calloc (size + 1, sizeof (texts[0]));
    size_t count = 0;
    char *merged = NULL;
    json_t *value;
    size_t i;

    if (!texts) {
        dws_error_nomem (error);
        return NULL;
    }
    json_array_foreach (lists, i, value) {
        if (json_is_string (value))
            texts[count++] = json_string_value (value);
    }
    if (count < size)
        dws_error (error, EINVAL, "a hostlist is no string");
    else
        merged = dws_hosts_merge (texts, count, error);
    ERRNO_SAFE (free (texts));
    return merged;
}

char *dws_hosts_join (const char *hosts, const char *more,
                      dws_error_t *error)
{
    const char *lists[] = { hosts ? hosts : "", more ? more : "" };

    return dws_hosts_merge (lists, 2, error);
}

char *dws_hosts_subtract (const char *hosts, const char *less,
                          dws_error_t *error)
{
    struct hostlist *hl;
    struct hostlist *drop = NULL;
    struct hostlist *rest = NULL;
    const char *host;
    char *s = NULL;
    bool ok = true;

    if (!(rest = hosts_list_create (error)))
        return NULL;
    hl = dws_hostlist_decode (hosts ? hosts : "");
    drop = dws_hostlist_decode (less ? less : "");
    if (!hl || !drop) {
        dws_error (error, EINVAL, "malformed hostlist");
        ok = false;
    }
    for (host = ok ? hostlist_first (hl) : NULL; host && ok;
         host = hostlist_next (hl)) {
        if (hostlist_find (drop, host) < 0)
            ok = hosts_list_append (rest, host, error) == 0;
    }
    s = hosts_list_finish (rest, ok, error);
    ERRNO_SAFE (hostlist_destroy (hl));
    ERRNO_SAFE (hostlist_destroy (drop));
    return s;
}

size_t dws_hosts_count (const char *hosts)
{
    struct hosts_walk walk;

    if (!hosts || hosts_walk_begin (&walk, hosts) < 0)
        return 0;
    hosts_walk_end (&walk);
    return walk.count;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See constraint.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <flux/hostlist.h>

#include "libdws/util/hosts.h"
#include "libdws/util/lists.h"
#include "libutil/errno_safe.h"
#include "constraint.h"

/* The most bytes of a list in a message.
 */
#define SHOWN 80

static int64_t needed (int64_t nodes)
{
    return nodes < INT32_MAX ? nodes : 1;
}

char *dws_constraint_rabbits (const char *hosts,
                              const struct dws_topology *topo,
                              dws_error_t *error)
{
    struct hostlist *hl = dws_hostlist_decode (hosts);
    struct hostlist *rabbits;
    const char *host;
    bool ok = true;

    if (!hl) {
        dws_error (error, EINVAL, "malformed hostlist '%.*s'", SHOWN, hosts);
        return NULL;
    }
    if (!(rabbits = hosts_list_create (error))) {
        hostlist_destroy (hl);
        return NULL;
    }
    for (host = hostlist_first (hl); host; host = hostlist_next (hl)) {
        const char *rabbit = dws_topology_find (topo, host) >= 0
            ? host : dws_topology_rabbit (topo, host);

        if (rabbit && hosts_list_append (rabbits, rabbit, error) < 0) {
            ok = false;
            break;
        }
    }
    if (ok && hostlist_count (rabbits) == 0) {
        dws_error (error, ENOENT, "none of its nodes has a rabbit");
        ok = false;
    }
    ERRNO_SAFE (hostlist_destroy (hl));
    return hosts_list_finish (rabbits, ok, error);
}

static json_t *encode (struct hostlist *hl, dws_error_t *error)
{
    hostlist_uniq (hl);
    return hosts_list_constraint (hl, error);
}

static int unknown_rabbit (const char *name,
                           const struct dws_topology *topo,
                           dws_error_t *error)
{
    struct hostlist *hl = hostlist_create ();
    char *all;

    for (size_t i = 0; hl && i < dws_topology_count (topo); i++)
        (void)dws_hostlist_append (hl, dws_topology_name (topo, i));
    all = hostlist_encode (hl);
    dws_error (error, EINVAL, "there is no rabbit '%.*s', there %s %.*s",
               SHOWN, name, hostlist_count (hl) == 1 ? "is" : "are",
               SHOWN, all && *all ? all : "none");
    ERRNO_SAFE (free (all));
    ERRNO_SAFE (hostlist_destroy (hl));
    return -1;
}

/* The nodes next to 'wanted', each rabbit once.
 */
static int collect (struct hostlist *hl,
                    struct hostlist *wanted,
                    const struct dws_topology *topo,
                    dws_error_t *error)
{
    const char *name;

    for (name = hostlist_first (wanted); name; name = hostlist_next (wanted)) {
        int index = dws_topology_find (topo, name);

        if (index < 0)
            return unknown_rabbit (name, topo, error);
        if (hosts_list_append (hl, dws_topology_hostlist (topo, index),
                               error) < 0)
            return -1;
    }
    return 0;
}

json_t *dws_constraint_make (const char *rabbits,
                             const struct dws_topology *topo,
                             int64_t nodes,
                             dws_error_t *error)
{
    struct hostlist *wanted = dws_hostlist_decode (rabbits);
    struct hostlist *hl = NULL;
    json_t *o = NULL;

    if (!wanted || hostlist_count (wanted) == 0) {
        dws_error (error, EINVAL, "'%.*s' is not a list of rabbits", SHOWN,
                   rabbits);
        goto done;
    }
    hostlist_uniq (wanted);
    if (!(hl = hosts_list_create (error))
        || collect (hl, wanted, topo, error) < 0)
        goto done;
    if (hostlist_count (hl) < needed (nodes)) {
        dws_error (error, ENOSPC, "the nodes next to %.*s are %d, the job"
                   " needs %lld", SHOWN, rabbits, hostlist_count (hl),
                   (long long)needed (nodes));
        goto done;
    }
    o = encode (hl, error);
done:
    ERRNO_SAFE (hostlist_destroy (wanted));
    ERRNO_SAFE (hostlist_destroy (hl));
    return o;
}

static struct hostlist *decode (json_t *constraint)
{
    const char *s;

    if (json_unpack (constraint, "{s:[s]}", "hostlist", &s) < 0)
        return NULL;
    return dws_hostlist_decode (s);
}

static int intersect (struct hostlist *both,
                      struct hostlist *a,
                      struct hostlist *b,
                      dws_error_t *error)
{
    const char *host;

    for (host = hostlist_first (a); host; host = hostlist_next (a)) {
        if (hostlist_find (b, host) >= 0
            && hosts_list_append (both, host, error) < 0)
            return -1;
    }
    return 0;
}

json_t *dws_constraint_join (json_t *a,
                             json_t *b,
                             int64_t nodes,
                             dws_error_t *error)
{
    struct hostlist *all = NULL;
    struct hostlist *some = NULL;
    struct hostlist *both = NULL;
    json_t *o = NULL;

    if (json_is_null (a))
        return json_incref (b);
    if (json_is_null (b))
        return json_incref (a);
    if (!(all = decode (a)) || !(some = decode (b))) {
        dws_error_nomem (error);
        goto done;
    }
    if (!(both = hosts_list_create (error))
        || intersect (both, all, some, error) < 0)
        goto done;
    if (hostlist_count (both) < needed (nodes)) {
        dws_error (error, ENOSPC, "the nodes next to all that the job asks for"
                   " (rabbits, labels, persistent storage) are %d, it needs"
                   " %lld", hostlist_count (both), (long long)needed (nodes));
        goto done;
    }
    o = encode (both, error);
done:
    ERRNO_SAFE (hostlist_destroy (all));
    ERRNO_SAFE (hostlist_destroy (some));
    ERRNO_SAFE (hostlist_destroy (both));
    return o;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See mounts.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "mounts.h"

/* Mounts on compute nodes are told from those on rabbits by their name.
 */
#define COMPUTES_SUFFIX "-computes"

static struct hostlist *list_create (dws_error_t *error)
{
    struct hostlist *hl;

    if (!(hl = hostlist_create ()))
        dws_error (error, ENOMEM, "out of memory");
    return hl;
}

static int list_append (struct hostlist *hl, const char *hosts,
                        dws_error_t *error)
{
    if (hostlist_append (hl, hosts) < 0)
        return dws_error (error, errno == ENOMEM ? ENOMEM : EINVAL,
                          "malformed hostlist '%s'", hosts);
    return 0;
}

/* Encode and destroy. NULL if 'ok' is false.
 */
static char *list_finish (struct hostlist *hl, bool ok, dws_error_t *error)
{
    int saved_errno = errno;
    char *s = NULL;

    if (ok) {
        hostlist_uniq (hl);
        if (!(s = hostlist_encode (hl)))
            dws_error (error, ENOMEM, "out of memory");
        saved_errno = errno;
    }
    hostlist_destroy (hl);
    errno = saved_errno;
    return s;
}

static bool ends_with (const char *s, const char *suffix)
{
    size_t len = strlen (s);
    size_t n = strlen (suffix);

    return len >= n && !strcmp (s + len - n, suffix);
}

/* A mount's state is what it is to become; ready says that it has.
 */
static bool mounts_are (json_t *status, const char *state)
{
    json_t *mounts = json_object_get (status, "mounts");
    json_t *mount;
    size_t index;

    json_array_foreach (mounts, index, mount) {
        const char *s = json_string_value (json_object_get (mount, "state"));
        if (!s || strcmp (s, state) != 0
            || !json_is_true (json_object_get (mount, "ready")))
            return false;
    }
    return json_array_size (mounts) > 0;
}

char *dws_mounts_lagging (json_t *clientmounts,
                          const char *state,
                          dws_error_t *error)
{
    struct hostlist *hl;
    json_t *object;
    size_t index;

    if (!(hl = list_create (error)))
        return NULL;
    json_array_foreach (clientmounts, index, object) {
        json_t *status = json_object_get (object, "status");
        const char *name = "";
        const char *node = NULL;

        json_unpack (object, "{s:{s:s}}", "metadata", "name", &name);
        json_unpack (object, "{s:{s:s}}", "spec", "node", &node);
        if (node && ends_with (name, COMPUTES_SUFFIX)
            && !mounts_are (status, state)
            && list_append (hl, node, error) < 0)
            return list_finish (hl, false, error);
    }
    return list_finish (hl, true, error);
}

static bool spans_rabbits (const char *label)
{
    return strcmp (label, "xfs") != 0 && strcmp (label, "gfs2") != 0
        && strcmp (label, "raw") != 0;
}

static json_t *allocation_sets (json_t *servers, const char *half)
{
    return json_object_get (json_object_get (servers, half),
                            "allocationSets");
}

/* What is asked about a rabbit's part in an allocation set: 'entry' is what is
 * wanted or what was made of it, 'made' has what was made of the set, by rabbit.
 */
typedef bool (*part_f)(json_t *made, const char *rabbit, json_t *entry);

static bool is_unready (json_t *made, const char *rabbit, json_t *entry)
{
    return !json_is_true (json_object_get (json_object_get (made, rabbit),
                                           "ready"));
}

static bool is_allocated (json_t *made, const char *rabbit, json_t *entry)
{
    return json_number_value (json_object_get (entry, "allocationSize")) > 0.;
}

/* 'half' is spec, which lists the rabbits, or status, which has them by name.
 */
static int append_rabbits (struct hostlist *hl,
                           json_t *object,
                           const char *half,
                           part_f match,
                           dws_error_t *error)
{
    json_t *status = allocation_sets (object, "status");
    json_t *set;
    size_t index;

    json_array_foreach (allocation_sets (object, half), index, set) {
        json_t *made = json_object_get (json_array_get (status, index),
                                        "storage");
        json_t *storage = json_object_get (set, "storage");
        const char *rabbit;
        json_t *entry;
        size_t i;

        json_array_foreach (storage, i, entry) {
            rabbit = json_string_value (json_object_get (entry, "name"));
            if (rabbit && match (made, rabbit, entry)
                && list_append (hl, rabbit, error) < 0)
                return -1;
        }
        json_object_foreach (storage, rabbit, entry) {
            if (match (made, rabbit, entry)
                && list_append (hl, rabbit, error) < 0)
                return -1;
        }
    }
    return 0;
}

static struct hostlist *list_rabbits (json_t *servers, const char *half,
                                      part_f match, dws_error_t *error)
{
    struct hostlist *hl;
    json_t *object;
    size_t index;

    if (!(hl = list_create (error)))
        return NULL;
    json_array_foreach (servers, index, object) {
        if (append_rabbits (hl, object, half, match, error) < 0) {
            hostlist_destroy (hl);
            return NULL;
        }
    }
    return hl;
}

static bool any_spans (json_t *object)
{
    json_t *set;
    size_t index;

    json_array_foreach (allocation_sets (object, "spec"), index, set) {
        const char *label = json_string_value (json_object_get (set,
                                                                "label"));
        if (label && spans_rabbits (label))
            return true;
    }
    return false;
}

char *dws_servers_lagging (json_t *servers,
                           const char *hosts,
                           const struct dws_topology *topo,
                           bool *shared,
                           dws_error_t *error)
{
    struct hostlist *all;
    struct hostlist *unready;
    struct hostlist *hl;
    const char *host;
    json_t *object;
    size_t index;
    bool ok;

    *shared = false;
    json_array_foreach (servers, index, object) {
        if (any_spans (object))
            *shared = true;
    }
    if (!(all = hostlist_decode (hosts))) {
        dws_error (error, EINVAL, "malformed hostlist '%s'", hosts);
        return NULL;
    }
    unready = list_rabbits (servers, "spec", is_unready, error);
    hl = unready ? list_create (error) : NULL;
    ok = hl != NULL;
    for (host = hostlist_first (all); host && ok; host = hostlist_next (all)) {
        const char *rabbit = dws_topology_rabbit (topo, host);
        if (rabbit && hostlist_find (unready, rabbit) >= 0)
            ok = list_append (hl, host, error) == 0;
    }
    hostlist_destroy (unready);
    hostlist_destroy (all);
    return list_finish (hl, ok, error);
}

char *dws_servers_unready (json_t *servers, dws_error_t *error)
{
    struct hostlist *hl = list_rabbits (servers, "spec", is_unready, error);

    return list_finish (hl, hl != NULL, error);
}

char *dws_servers_allocated (json_t *servers, dws_error_t *error)
{
    struct hostlist *hl = list_rabbits (servers, "status", is_allocated,
                                        error);

    return list_finish (hl, hl != NULL, error);
}

char *dws_hosts_join (const char *hosts, const char *more,
                      dws_error_t *error)
{
    struct hostlist *hl;
    bool ok;

    if (!(hl = list_create (error)))
        return NULL;
    ok = (!hosts || list_append (hl, hosts, error) == 0)
        && (!more || list_append (hl, more, error) == 0);
    return list_finish (hl, ok, error);
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

    if (!(rest = list_create (error)))
        return NULL;
    hl = hostlist_decode (hosts ? hosts : "");
    drop = hostlist_decode (less ? less : "");
    if (!hl || !drop) {
        dws_error (error, EINVAL, "malformed hostlist");
        ok = false;
    }
    for (host = ok ? hostlist_first (hl) : NULL; host && ok;
         host = hostlist_next (hl)) {
        if (hostlist_find (drop, host) < 0)
            ok = list_append (rest, host, error) == 0;
    }
    s = list_finish (rest, ok, error);
    {
        int saved_errno = errno;
        hostlist_destroy (hl);
        hostlist_destroy (drop);
        errno = saved_errno;
    }
    return s;
}

size_t dws_hosts_count (const char *hosts)
{
    struct hostlist *hl = hosts ? hostlist_decode (hosts) : NULL;
    int count = hl ? hostlist_count (hl) : 0;

    hostlist_destroy (hl);
    return count > 0 ? count : 0;
}

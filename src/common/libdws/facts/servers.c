/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See servers.h.
 */

#include <errno.h>
#include <string.h>

#include "libdws/util/hosts.h"
#include "libdws/util/lists.h"
#include "servers.h"

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

/* A test of a rabbit's part in an allocation set: 'entry' is the part as it is
 * wanted or as it was made, 'made' has all made parts of the set, by rabbit.
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

/* 'half' names a half of a Servers object: spec, where rabbits are a list, or
 * status, where they are the keys of an object.
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
                && hosts_list_append (hl, rabbit, error) < 0)
                return -1;
        }
        json_object_foreach (storage, rabbit, entry) {
            if (match (made, rabbit, entry)
                && hosts_list_append (hl, rabbit, error) < 0)
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

    if (!(hl = hosts_list_create (error)))
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
    if (!(all = dws_hostlist_decode (hosts))) {
        dws_error (error, EINVAL, "malformed hostlist '%s'", hosts);
        return NULL;
    }
    unready = list_rabbits (servers, "spec", is_unready, error);
    hl = unready ? hosts_list_create (error) : NULL;
    ok = hl != NULL;
    for (host = hostlist_first (all); host && ok; host = hostlist_next (all)) {
        const char *rabbit = dws_topology_rabbit (topo, host);
        if (rabbit && hostlist_find (unready, rabbit) >= 0)
            ok = hosts_list_append (hl, host, error) == 0;
    }
    hostlist_destroy (unready);
    hostlist_destroy (all);
    return hosts_list_finish (hl, ok, error);
}

char *dws_servers_unready (json_t *servers, dws_error_t *error)
{
    struct hostlist *hl = list_rabbits (servers, "spec", is_unready, error);

    return hosts_list_finish (hl, hl != NULL, error);
}

char *dws_servers_allocated (json_t *servers, dws_error_t *error)
{
    struct hostlist *hl = list_rabbits (servers, "status", is_allocated,
                                        error);

    return hosts_list_finish (hl, hl != NULL, error);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See location.h. A host hangs on one rabbit, so that constraints on hosts
 * are worked out on rabbits.
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "libdws/util/jsonmake.h"
#include "libdws/util/hosts.h"
#include "libdws/util/lists.h"
#include "libutil/errno_safe.h"
#include "allocset_private.h"
#include "drives.h"
#include "data_first.h"
#include "location.h"

/* Look for storage that exists already or, with 'own', for storage that was made for
 * the job.
 */
struct search {
    const struct dws_topology *topo;
    json_t *goodness;     // {HOST: INTEGER}, or NULL
    int64_t nodes;
    bool own;
};

static bool is_own (const struct dws_breakdowns *bl,
                    const struct location *loc)
{
    return breakdowns_have (bl, loc->name, loc->namespace);
}

static bool is_listed (json_t *list, const struct location *loc)
{
    size_t i;
    json_t *value;

    json_array_foreach (list, i, value) {
        const char *name = "";
        const char *namespace = "";

        (void)json_unpack (value,
                           "{s:s s:s}",
                           "name", &name,
                           "namespace", &namespace);
        if (strcmp (name, loc->name) == 0
            && strcmp (namespace, loc->namespace) == 0)
            return true;
    }
    return false;
}

static void append_reference (json_t **list, const char *name,
                              const char *namespace)
{
    dws_json_append (list, json_pack ("{s:s s:s}", "name", name,
                                      "namespace", namespace));
}

json_t *dws_location_servers (const struct dws_breakdowns *breakdowns)
{
    const struct dws_breakdowns *bl = breakdowns_or_none (breakdowns);
    json_t *result = json_array ();

    for (size_t i = 0; i < bl->count; i++) {
        for (size_t j = 0; j < bl->list[i].nlocations; j++) {
            const struct location *loc = &bl->list[i].locations[j];

            if (!is_own (bl, loc) && !is_listed (result, loc))
                append_reference (&result, loc->name, loc->namespace);
        }
    }
    return result;
}

/* The allocation set that 'loc' points to.
 */
static json_t *find_set (json_t *servers,
                             const struct location *loc,
                             dws_error_t *error)
{
    size_t i;
    json_t *value;

    json_array_foreach (servers, i, value) {
        const char *name;
        const char *namespace = "default";
        json_t *sets;
        json_t *set;

        if (json_unpack (value,
                         "{s:{s:s s?s}}",
                         "metadata",
                           "name", &name,
                           "namespace", &namespace) < 0
            || strcmp (name, loc->name) != 0
            || strcmp (namespace, loc->namespace) != 0)
            continue;
        if (json_unpack (value,
                         "{s:{s:o}}",
                         "spec",
                           "allocationSets", &sets) == 0
            && (set = json_array_get (sets, loc->set))
            && json_object_get (set, "storage"))
            return set;
        dws_error (error,
                   EINVAL,
                   "Servers %s has no allocation set %u",
                   loc->name,
                   loc->set);
        return NULL;
    }
    dws_error (error, EINVAL, "Servers %s does not exist", loc->name);
    return NULL;
}

bool dws_location_lustre (const char *label)
{
    static const char *const parts[] = { "mgt", "mdt", "mgtmdt", "ost" };

    for (size_t i = 0; label && i < sizeof (parts) / sizeof (parts[0]); i++) {
        if (strcmp (label, parts[i]) == 0)
            return true;
    }
    return false;
}

/* Lower 'allowed' (of each rabbit the number of nodes that may mount) to what the
 * set has there: nothing, or for each of its allocations a node. Returns 1, or 0 if
 * every node reaches the set, as it does one of Lustre.
 */
static int restrict_rabbits (int64_t *allowed,
                             const struct dws_topology *topo,
                             json_t *servers,
                             const struct location *loc,
                             dws_error_t *error)
{
    size_t n = dws_topology_count (topo);
    json_t *set;
    json_t *storage;
    json_t *value;
    const char *label = "";
    int64_t *holds;
    size_t i;

    if (!(set = find_set (servers, loc, error)))
        return -1;
    (void)json_unpack (set, "{s:s}", "label", &label);
    if (dws_location_lustre (label))
        return 0;
    storage = json_object_get (set, "storage");
    if (!(holds = calloc (n + 1, sizeof (*holds))))
        return dws_error_nomem (error);
    json_array_foreach (storage, i, value) {
        const char *name = "";
        json_int_t count = INT32_MAX;
        int index;

        (void)json_unpack (value, "{s:s s?I}", "name", &name,
                           "allocationCount", &count);
        if ((index = dws_topology_find (topo, name)) < 0)
            continue;
        if (!dws_drives_shared (label) || count > INT32_MAX)
            count = INT32_MAX;
        if (count > 0)
            holds[index] += count;
    }
    for (i = 0; i < n; i++) {
        if (holds[i] < allowed[i])
            allowed[i] = holds[i];
    }
    free (holds);
    return 1;
}

static int goodness (const struct search *search, const char *host)
{
    json_t *value = json_object_get (search->goodness, host);

    return value ? (int)json_integer_value (value) : -1;
}

/* Append the first 'allowed' hosts, the best of them where they are known to differ.
 * Returns how many, or -1.
 */
static int64_t append_best (struct hostlist *hl, struct hostlist *list,
                            int64_t allowed, const struct search *search)
{
    int64_t n = 0;
    int best = search->goodness ? DWS_POOL_IDLE : -1;
    const char *host;

    for (int good = best; good >= -1; good--) {
        for (host = hostlist_first (list); host && n < allowed;
             host = hostlist_next (list)) {
            if (search->goodness && goodness (search, host) != good)
                continue;
            if (dws_hostlist_append (hl, host) < 0)
                return -1;
            n++;
        }
    }
    return n;
}

/* Add the hosts of a rabbit that the job may have: only some where it could otherwise
 * get more than can mount. Returns how many can.
 */
static int64_t append_hosts (struct hostlist *hl,
                             const char *hosts,
                             int64_t allowed,
                             const struct search *search)
{
    struct hostlist *list = dws_hostlist_decode (hosts);
    int64_t count = list ? hostlist_count (list) : -1;
    int64_t n = 0;

    if (list && (allowed >= search->nodes || allowed >= count)) {
        if (hostlist_append_list (hl, list) < 0)
            count = -1;
        n = count;
    }
    else if (list)
        n = append_best (hl, list, allowed, search);
    hostlist_destroy (list);
    return count < 0 ? -1 : n;
}

static json_t *encode_hosts (const int64_t *allowed,
                             const struct search *search,
                             dws_error_t *error)
{
    const struct dws_topology *topo = search->topo;
    int64_t nodes = search->nodes;
    struct hostlist *hl = hostlist_create ();
    json_t *result = NULL;
    bool limited = false;
    int count;

    if (!hl)
        goto nomem;
    for (size_t i = 0; i < dws_topology_count (topo); i++) {
        const char *hosts = dws_topology_hostlist (topo, i);

        if (allowed[i] <= 0)
            continue;
        limited |= allowed[i] < INT32_MAX;
        if (append_hosts (hl, hosts, allowed[i], search) < 0)
            goto nomem;
    }
    count = hostlist_count (hl);
    if (count == 0) {
        dws_error (error,
                   ENOSPC,
                   "no compute node has physical access to all of the%s"
                   " storage that the job uses",
                   search->own ? "" : " persistent");
        goto done;
    }
    if (limited && nodes < INT32_MAX && count < nodes) {
        dws_error (error,
                   ENOSPC,
                   "the persistent storage that the job uses was made for"
                   " fewer nodes: %d can mount it, the job has %lld",
                   count,
                   (long long)nodes);
        goto done;
    }
    result = hosts_list_constraint (hl, error);
done:
    ERRNO_SAFE (hostlist_destroy (hl));
    return result;
nomem:
    dws_error_nomem (error);
    goto done;
}

static json_t *locate (const struct dws_breakdowns *breakdowns,
                       json_t *servers,
                       const struct search *search,
                       dws_error_t *error)
{
    const struct dws_breakdowns *bl = breakdowns_or_none (breakdowns);
    size_t count = dws_topology_count (search->topo);
    json_t *result = NULL;
    int64_t *allowed = NULL;
    bool any = false;

    if (!(allowed = calloc (count + 1, sizeof (*allowed)))) {
        dws_error_nomem (error);
        goto done;
    }
    for (size_t i = 0; i < count; i++)
        allowed[i] = INT32_MAX;
    for (size_t i = 0; i < bl->count; i++) {
        for (size_t j = 0; j < bl->list[i].nlocations; j++) {
            const struct location *loc = &bl->list[i].locations[j];
            int rc;

            if (is_own (bl, loc) != search->own)
                continue;
            if ((rc = restrict_rabbits (allowed, search->topo, servers, loc,
                                        error)) < 0)
                goto done;
            any |= rc > 0;
        }
    }
    result = any ? encode_hosts (allowed, search, error) : json_null ();
done:
    free (allowed);
    return result;
}

json_t *dws_location_constraint (const struct dws_breakdowns *breakdowns,
                                 json_t *servers,
                                 const struct dws_topology *topo,
                                 int64_t nodes,
                                 dws_error_t *error)
{
    struct search search = { .topo = topo, .nodes = nodes };

    return locate (breakdowns, servers, &search, error);
}

json_t *dws_location_data_first (const struct dws_breakdowns *breakdowns,
                                 json_t *servers,
                                 const struct dws_topology *topo,
                                 json_t *goodness,
                                 int64_t nodes,
                                 dws_error_t *error)
{
    struct search search = {
        .topo = topo,
        .goodness = goodness,
        .nodes = nodes,
        .own = true,
    };

    return locate (breakdowns, servers, &search, error);
}

json_t *dws_location_own (const struct dws_breakdowns *breakdowns)
{
    const struct dws_breakdowns *bl = breakdowns_or_none (breakdowns);
    json_t *result = json_array ();

    for (size_t i = 0; i < bl->count; i++) {
        const struct breakdown *b = &bl->list[i];

        if (b->servers)
            append_reference (&result, b->servers, b->servers_namespace);
    }
    return result;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See health.h.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>
#include <flux/idset.h>

#include "libutil/errno_safe.h"
#include "libdws/graph/rset.h"
#include "libdws/util/bounds.h"
#include "libdws/util/lists.h"
#include "health.h"
#include "usable.h"

/* Nodes
 */

struct node {
    const char *reason;         // of the drain, NULL: not drained
    bool offline;
    bool excluded;
};

struct dws_nodes {
    json_t *status;             // owns the reasons
    struct rset *rs;
    struct node *list;          // in the order of rs->hosts
};

void dws_nodes_destroy (struct dws_nodes *nodes)
{
    if (nodes) {
        ERRNO_SAFE_BLOCK;
        rset_destroy (nodes->rs);
        free (nodes->list);
        json_decref (nodes->status);
        free (nodes);
    }
}

size_t dws_nodes_up (const struct dws_nodes *nodes)
{
    size_t count = 0;

    for (size_t i = 0; i < nodes->rs->count; i++) {
        const struct node *node = &nodes->list[i];

        count += !node->offline && !node->excluded && !node->reason;
    }
    return count;
}

size_t dws_nodes_all (const struct dws_nodes *nodes)
{
    size_t count = 0;

    for (size_t i = 0; i < nodes->rs->count; i++)
        count += !nodes->list[i].excluded;
    return count;
}

static struct idset *decode_idset (const char *s, dws_error_t *error)
{
    struct idset *ids = dws_idset_decode (s, DWS_MAX_HOSTS);

    if (!ids)
        dws_error (error, EPROTO, "resource.status: '%s' is no idset", s);
    return ids;
}

static int set_flags (struct dws_nodes *nodes,
                      const char *offline,
                      const char *exclude,
                      dws_error_t *error)
{
    struct idset *off = NULL;
    struct idset *ex = NULL;
    int rc = -1;

    if (!(off = decode_idset (offline, error))
        || !(ex = decode_idset (exclude, error)))
        goto done;
    for (size_t i = 0; i < nodes->rs->count; i++) {
        nodes->list[i].offline = idset_test (off, nodes->rs->hosts[i].rank);
        nodes->list[i].excluded = idset_test (ex, nodes->rs->hosts[i].rank);
    }
    rc = 0;
done:
    idset_destroy (off);
    idset_destroy (ex);
    return rc;
}

static int set_drains (struct dws_nodes *nodes, json_t *drain,
                       dws_error_t *error)
{
    const char *ranks;
    json_t *value;

    json_object_foreach (drain, ranks, value) {
        const char *reason = "";
        struct idset *ids;

        (void)json_unpack (value, "{s:s}", "reason", &reason);
        if (!(ids = decode_idset (ranks, error)))
            return -1;
        for (size_t i = 0; i < nodes->rs->count; i++) {
            if (idset_test (ids, nodes->rs->hosts[i].rank))
                nodes->list[i].reason = reason;
        }
        idset_destroy (ids);
    }
    return 0;
}

struct dws_nodes *dws_nodes_create (json_t *status, dws_error_t *error)
{
    struct dws_nodes *nodes;
    const char *offline = "";
    const char *exclude = "";
    json_t *drain = NULL;
    json_t *R;

    if (json_unpack (status,
                     "{s:o s?o s?s s?s}",
                     "R", &R,
                     "drain", &drain,
                     "offline", &offline,
                     "exclude", &exclude) < 0) {
        dws_error (error, EPROTO, "resource.status: malformed response");
        return NULL;
    }
    if (!(nodes = calloc (1, sizeof (*nodes)))) {
        dws_error_nomem (error);
        return NULL;
    }
    nodes->status = json_incref (status);
    if (!(nodes->rs = rset_create (R, NULL, error)))
        goto error;
    if (!(nodes->list = calloc (nodes->rs->count + 1, sizeof (struct node)))) {
        dws_error_nomem (error);
        goto error;
    }
    if (set_flags (nodes, offline, exclude, error) < 0
        || set_drains (nodes, drain, error) < 0)
        goto error;
    return nodes;
error:
    dws_nodes_destroy (nodes);
    return NULL;
}

static bool has_property (const struct rset *rs, unsigned int rank,
                          const char *name)
{
    for (size_t i = 0; i < rs->nproperties; i++) {
        if (!strcmp (rs->properties[i].name, name))
            return idset_test (rs->properties[i].ranks, rank);
    }
    return false;
}

static bool has_all (const struct rset *rs, unsigned int rank, json_t *names)
{
    size_t index;
    json_t *name;

    json_array_foreach (names, index, name) {
        if (!has_property (rs, rank, json_string_value (name)))
            return false;
    }
    return true;
}

static bool in_queues (const struct rset *rs, unsigned int rank,
                       json_t *queues)
{
    size_t index;
    json_t *names;

    if (!queues)
        return true;
    json_array_foreach (queues, index, names) {
        if (has_all (rs, rank, names))
            return true;
    }
    return false;
}

/* Rabbits
 */

#define READY "Ready"

static bool is_ready (json_t *status)
{
    const char *s = json_string_value (status);

    return s && !strcmp (s, READY);
}

/* Links that the rabbit reports as not ready are lost. A rabbit may report none.
 */
static int add_lost (json_t *lost, json_t *status)
{
    json_t *computes = NULL;
    json_t *entry;
    size_t index;

    (void)json_unpack (status, "{s:{s:o}}", "access", "computes", &computes);
    json_array_foreach (computes, index, entry) {
        const char *name = NULL;
        json_t *state = NULL;

        (void)json_unpack (entry, "{s:s s?o}", "name", &name,
                           "status", &state);
        if (name && !is_ready (state)
            && json_object_set_new (lost, name, json_true ()) < 0)
            return -1;
    }
    return 0;
}

static json_t *encode_rabbit (bool up, int64_t capacity)
{
    return json_pack ("{s:b s:I}", "up", up, "capacity", (json_int_t)capacity);
}

static int read_storage (json_t *rabbits, json_t *lost, json_t *storage,
                         const struct dws_topology *topo)
{
    const char *name = NULL;
    json_t *status = NULL;
    int64_t capacity;
    int index;
    bool up;

    (void)json_unpack (storage, "{s:{s:s} s?o}",
                       "metadata", "name", &name,
                       "status", &status);
    if (!name || (index = dws_topology_find (topo, name)) < 0)
        return 0;
    capacity = dws_health_capacity (storage,
                                    dws_topology_capacity (topo, index));
    up = is_ready (json_object_get (status, "status"));
    if (json_object_set_new (rabbits, name, encode_rabbit (up, capacity)) < 0
        || (up && add_lost (lost, status) < 0))
        return -1;
    return 0;
}

/* Read the rabbits of the mapping, and the hosts to which rabbits that are up have no
 * link. A rabbit that Kubernetes does not know is not up.
 */
static int read_storages (json_t *rabbits, json_t *lost, json_t *storages,
                          const struct dws_topology *topo)
{
    bool up = json_array_size (storages) == 0;
    json_t *storage;
    size_t index;

    for (size_t i = 0; i < dws_topology_count (topo); i++) {
        if (json_object_set_new (rabbits, dws_topology_name (topo, i),
                                 encode_rabbit (up,
                                                dws_topology_capacity (topo,
                                                                       i)))
            < 0)
            return -1;
    }
    json_array_foreach (storages, index, storage) {
        if (read_storage (rabbits, lost, storage, topo) < 0)
            return -1;
    }
    return 0;
}

/* Note the bytes that no job has.
 */
static int add_outside (json_t *rabbits, const struct dws_bytes *outside)
{
    for (size_t i = 0; outside && i < outside->count; i++) {
        json_t *state = json_object_get (rabbits, outside->list[i].rabbit);

        if (state
            && json_object_set_new (state, "outside",
                                    json_integer (outside->list[i].bytes)) < 0)
            return -1;
    }
    return 0;
}

/* Decision
 */

struct sets {
    struct hostlist *bad;
    struct hostlist *unlinked;
    struct hostlist *drain;
    struct hostlist *undrain;
};

static int list_host (struct hostlist *hl, const char *host)
{
    return dws_hostlist_append (hl, host) < 0 ? -1 : 0;
}

static int note (json_t *set, const char *host)
{
    return json_object_set_new (set, host, json_true ());
}

static bool is_link_drain (const struct node *node)
{
    return node->reason && !strcmp (node->reason, DWS_DRAIN_LINK);
}

/* A rabbit that is down does not report its links: nodes that are drained for their link
 * stay drained, and no other node is drained.
 */
static int decide_node (struct dws_health *next,
                        const struct dws_health *last,
                        struct sets *sets,
                        const char *host,
                        const struct node *node,
                        bool may_drain,
                        bool up,
                        bool lost,
                        bool soft)
{
    bool pardoned = may_drain && (lost || !up) && !node->reason
                    && (json_object_get (last->ours, host)
                        || json_object_get (last->pardoned, host));

    if ((!up || (lost && soft)) && list_host (sets->bad, host) < 0)
        return -1;
    if (up && lost && soft && !node->reason && (pardoned || !may_drain)
        && list_host (sets->unlinked, host) < 0)
        return -1;
    if (pardoned)
        return note (next->pardoned, host);
    if (is_link_drain (node))
        return may_drain && (lost || !up) ? note (next->ours, host)
                                          : list_host (sets->undrain, host);
    if (may_drain && lost && !node->reason)
        return list_host (sets->drain, host);
    return 0;
}

static int decide_nodes (struct dws_health *next,
                         const struct dws_health *last,
                         struct sets *sets,
                         json_t *lost,
                         const struct dws_topology *topo,
                         const struct dws_nodes *nodes,
                         const struct dws_health_policy *policy)
{
    for (size_t i = 0; i < nodes->rs->count; i++) {
        const struct rset_host *host = &nodes->rs->hosts[i];
        const struct node *node = &nodes->list[i];
        const char *rabbit = dws_topology_rabbit (topo, host->name);
        json_t *state;

        if (node->excluded)
            continue;
        next->away += node->reason || node->offline;
        if (!rabbit)
            continue;
        state = json_object_get (next->rabbits, rabbit);
        if (decide_node (next, last, sets, host->name, node,
                         policy->drain && in_queues (nodes->rs, host->rank,
                                                     policy->queues),
                         json_is_true (json_object_get (state, "up")),
                         json_object_get (lost, host->name) != NULL,
                         policy->soft_drain) < 0)
            return -1;
    }
    return 0;
}

void dws_health_clear (struct dws_health *health)
{
    ERRNO_SAFE_BLOCK;

    json_decref (health->rabbits);
    json_decref (health->ours);
    json_decref (health->pardoned);
    free (health->bad);
    free (health->unlinked);
    free (health->drain);
    free (health->undrain);
    *health = (struct dws_health){ 0 };
}

int dws_health_decide (struct dws_health *health,
                       json_t *storages,
                       const struct dws_topology *topo,
                       const struct dws_nodes *nodes,
                       const struct dws_health_policy *policy,
                       dws_error_t *error)
{
    struct dws_health next = {
        .rabbits = json_object (),
        .ours = json_object (),
        .pardoned = json_object (),
    };
    struct sets sets = {
        .bad = hostlist_create (),
        .unlinked = hostlist_create (),
        .drain = hostlist_create (),
        .undrain = hostlist_create (),
    };
    json_t *lost = json_object ();
    int rc = -1;

    if (!next.rabbits || !next.ours || !next.pardoned || !lost
        || !sets.bad || !sets.unlinked || !sets.drain || !sets.undrain
        || read_storages (next.rabbits, lost, storages, topo) < 0
        || add_outside (next.rabbits, policy->outside) < 0
        || decide_nodes (&next, health, &sets, lost, topo, nodes, policy) < 0
        || !(next.bad = hostlist_encode (sets.bad))
        || !(next.unlinked = hostlist_encode (sets.unlinked))
        || !(next.drain = hostlist_encode (sets.drain))
        || !(next.undrain = hostlist_encode (sets.undrain))) {
        dws_health_clear (&next);
        dws_error_nomem (error);
        goto done;
    }
    dws_health_clear (health);
    *health = next;
    rc = 0;
done:
    hostlist_destroy (sets.bad);
    hostlist_destroy (sets.unlinked);
    hostlist_destroy (sets.drain);
    hostlist_destroy (sets.undrain);
    json_decref (lost);
    return rc;
}

json_t *dws_health_constraint (json_t *constraint, dws_error_t *error)
{
    json_t *healthy = json_pack ("{s:[{s:[s]}]}", "not", "properties",
                                 DWS_BAD_PROPERTY);

    if (healthy && constraint && !json_is_null (constraint))
        healthy = json_pack ("{s:[Oo]}", "and", constraint, healthy);
    if (!healthy)
        dws_error_nomem (error);
    return healthy;
}

/* SystemStatus
 */

static bool is_stuck (const struct node *node, const char *host,
                      json_t *stuck, bool disabled)
{
    json_t *value = json_object_get (stuck, host);

    return node->reason
           && (!strncmp (node->reason, DWS_DRAIN_UNMOUNT,
                         strlen (DWS_DRAIN_UNMOUNT))
               || json_is_true (value)
               || (json_is_null (value) && disabled));
}

int dws_health_absent (json_t *since, const struct dws_nodes *nodes,
                       double now)
{
    for (size_t i = 0; i < nodes->rs->count; i++) {
        const char *host = nodes->rs->hosts[i].name;

        if (!nodes->list[i].offline)
            (void)json_object_del (since, host);
        else if (!json_object_get (since, host)
                 && json_object_set_new (since, host, json_real (now)) < 0) {
            errno = ENOMEM;
            return -1;
        }
    }
    return 0;
}

/* Has the grace ended? If not, note when it will.
 */
static bool is_due (struct dws_absence *absence, const char *host)
{
    json_t *since = json_object_get (absence->since, host);
    double due;

    if (absence->grace < 0. || !since)
        return false;
    due = json_number_value (since) + absence->grace;
    if (due <= absence->now)
        return true;
    if (due < absence->due)
        absence->due = due;
    return false;
}

json_t *dws_health_systemstatus (const struct dws_nodes *nodes,
                                 const struct dws_topology *topo,
                                 json_t *known,
                                 json_t *stuck,
                                 struct dws_absence *absence,
                                 dws_error_t *error)
{
    json_t *changes = json_object ();

    absence->due = INFINITY;
    if (!changes)
        goto nomem;
    for (size_t i = 0; i < nodes->rs->count; i++) {
        const struct node *node = &nodes->list[i];
        const char *host = nodes->rs->hosts[i].name;
        const char *is = json_string_value (json_object_get (known, host));
        bool disabled = is && !strcmp (is, "Disabled");
        bool want;

        if (!dws_topology_rabbit (topo, host))
            continue;
        want = is_stuck (node, host, stuck, disabled)
               || (node->offline && (disabled || is_due (absence, host)));
        if (want != disabled
            && json_object_set_new (changes, host,
                                    json_string (want ? "Disabled"
                                                      : "Enabled")) < 0)
            goto nomem;
    }
    return changes;
nomem:
    json_decref (changes);
    dws_error_nomem (error);
    return NULL;
}

void dws_health_unstick (json_t *stuck, const struct dws_nodes *nodes)
{
    for (size_t i = 0; i < nodes->rs->count; i++) {
        if (!nodes->list[i].reason)
            (void)json_object_del (stuck, nodes->rs->hosts[i].name);
    }
}

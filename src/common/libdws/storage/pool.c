/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The nodes of an instance, and which of them a job may have; see data_first.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>
#include <flux/idset.h>

#include "libdws/graph/rset.h"
#include "libdws/util/bounds.h"
#include "libdws/util/lists.h"
#include "libutil/errno_safe.h"
#include "data_first.h"

struct dws_pool {
    struct rset *rs;
    unsigned int ranks;         // more than the largest
    enum dws_goodness *good;    // in the order of rs->hosts
    size_t *taken;              // cores that jobs have, likewise
};

void dws_pool_destroy (struct dws_pool *pool)
{
    if (pool) {
        ERRNO_SAFE_BLOCK;
        rset_destroy (pool->rs);
        free (pool->good);
        free (pool->taken);
        free (pool);
    }
}

/* Set out[I] of each host that one of these lists names.
 */
static int mark_hosts (const struct dws_pool *pool, json_t *lists, bool *out)
{
    size_t index;
    json_t *value;

    json_array_foreach (lists, index, value) {
        const char *s = json_string_value (value);
        struct hostlist *hl = dws_hostlist_decode (s);
        const char *host;

        if (!hl)
            return -1;
        for (host = hostlist_first (hl); host; host = hostlist_next (hl)) {
            const struct rset_host *found = rset_find (pool->rs, host);

            if (found)
                out[found - pool->rs->hosts] = true;
        }
        hostlist_destroy (hl);
    }
    return json_is_array (lists) ? 0 : -1;
}

static int mark_ranks (const struct dws_pool *pool, json_t *lists, bool *out)
{
    struct idset *ids = idset_create (0, IDSET_FLAG_AUTOGROW);
    size_t index;
    json_t *value;
    int rc = ids && json_is_array (lists) ? 0 : -1;

    json_array_foreach (lists, index, value) {
        if (rc == 0)
            rc = dws_idset_decode_add (ids, json_string_value (value),
                                       pool->ranks);
    }
    for (size_t i = 0; i < pool->rs->count && rc == 0; i++)
        out[i] = idset_test (ids, pool->rs->hosts[i].rank);
    idset_destroy (ids);
    return rc;
}

static const struct idset *find_property (const struct rset *rs,
                                          const char *name)
{
    for (size_t i = 0; i < rs->nproperties; i++) {
        if (strcmp (rs->properties[i].name, name) == 0)
            return rs->properties[i].ranks;
    }
    return NULL;
}

/* Mark the nodes that have all properties; "^NAME" means that a node must not have NAME.
 */
static int mark_properties (const struct dws_pool *pool, json_t *names,
                            bool *out)
{
    const struct rset *rs = pool->rs;
    size_t index;
    json_t *value;

    for (size_t i = 0; i < rs->count; i++)
        out[i] = true;
    json_array_foreach (names, index, value) {
        const char *s = json_string_value (value);
        bool wanted = s && *s != '^';
        const struct idset *ids;

        if (!s)
            return -1;
        ids = find_property (rs, wanted ? s : s + 1);
        for (size_t i = 0; i < rs->count; i++)
            out[i] &= (ids && idset_test (ids, rs->hosts[i].rank)) == wanted;
    }
    return json_is_array (names) ? 0 : -1;
}

static int mark (const struct dws_pool *pool, json_t *constraint, bool *out);

/* 'any' of several constraints, or all of them. 'out' is false. All nodes satisfy an
 * empty list (RFC 31).
 */
static int mark_several (const struct dws_pool *pool, json_t *list, bool any,
                         bool *out)
{
    size_t count = pool->rs->count;
    size_t index;
    json_t *value;
    bool *one;

    if (!json_is_array (list) || !(one = calloc (count + 1, sizeof (*one))))
        return -1;
    for (size_t i = 0; i < count; i++)
        out[i] = !any || json_array_size (list) == 0;
    json_array_foreach (list, index, value) {
        memset (one, 0, count * sizeof (*one));
        if (mark (pool, value, one) < 0) {
            free (one);
            return -1;
        }
        for (size_t i = 0; i < count; i++)
            out[i] = any ? out[i] || one[i] : out[i] && one[i];
    }
    free (one);
    return 0;
}

/* Set out[I], which is false, of each host that satisfies an RFC 31 constraint. Returns
 * -1 if it is of an unknown form.
 */
static int mark (const struct dws_pool *pool, json_t *constraint, bool *out)
{
    const char *op = json_object_iter_key (json_object_iter (constraint));
    json_t *value = json_object_get (constraint, op ? op : "");
    int rc;

    if (!json_is_object (constraint) || json_object_size (constraint) > 1)
        return -1;
    if (!op) {
        for (size_t i = 0; i < pool->rs->count; i++)
            out[i] = true;
        return 0;
    }
    if (strcmp (op, "hostlist") == 0)
        return mark_hosts (pool, value, out);
    if (strcmp (op, "ranks") == 0)
        return mark_ranks (pool, value, out);
    if (strcmp (op, "properties") == 0)
        return mark_properties (pool, value, out);
    if (strcmp (op, "or") == 0)
        return mark_several (pool, value, true, out);
    if (strcmp (op, "and") == 0)
        return mark_several (pool, value, false, out);
    if (strcmp (op, "not") != 0)
        return -1;
    rc = mark_several (pool, value, false, out);
    for (size_t i = 0; i < pool->rs->count; i++)
        out[i] = !out[i];
    return rc;
}

static int set_goodness (struct dws_pool *pool, json_t *status,
                         const char *key, enum dws_goodness good,
                         dws_error_t *error)
{
    bool *found = calloc (pool->rs->count + 1, sizeof (*found));
    json_t *nodelist = NULL;

    if (!found)
        return dws_error_nomem (error);
    (void)json_unpack (status, "{s:{s:{s:o}}}", key, "execution", "nodelist",
                       &nodelist);
    if (nodelist && mark_hosts (pool, nodelist, found) < 0) {
        free (found);
        return dws_error (error, EPROTO, "resource.sched-status: %s: malformed"
                          " nodelist", key);
    }
    for (size_t i = 0; i < pool->rs->count; i++) {
        if (found[i])
            pool->good[i] = good;
    }
    free (found);
    return 0;
}

static size_t cores_of (const struct rset_host *host)
{
    for (size_t i = 0; host->entry && i < host->entry->count; i++) {
        if (strcmp (host->entry->children[i].type, "core") == 0)
            return host->entry->children[i].count;
    }
    return 0;
}

/* Jobs have all cores of a busy node, unless the R of what is allocated tells which. The
 * nodes are found by their ranks, as the ranks of an R may be in another order than its
 * hosts.
 */
static int set_taken (struct dws_pool *pool, json_t *allocated,
                      dws_error_t *error)
{
    const struct rset_host **by_rank;
    json_t *lite = NULL;
    struct rset *rs;

    for (size_t i = 0; i < pool->rs->count; i++) {
        if (pool->good[i] == DWS_POOL_BUSY)
            pool->taken[i] = cores_of (&pool->rs->hosts[i]);
    }
    (void)json_unpack (allocated, "{s:{s:o}}", "execution", "R_lite", &lite);
    if (json_array_size (lite) == 0)
        return 0;
    if (!(rs = rset_create (allocated, NULL, error)))
        return -1;
    if (!(by_rank = calloc (pool->ranks + 1, sizeof (*by_rank)))) {
        rset_destroy (rs);
        return dws_error_nomem (error);
    }
    for (size_t i = 0; i < rs->count; i++) {
        if (rs->hosts[i].rank < pool->ranks)
            by_rank[rs->hosts[i].rank] = &rs->hosts[i];
    }
    for (size_t i = 0; i < pool->rs->count; i++) {
        const struct rset_host *host = by_rank[pool->rs->hosts[i].rank];

        if (host)
            pool->taken[i] = cores_of (host);
    }
    free (by_rank);
    rset_destroy (rs);
    return 0;
}

int64_t dws_pool_cores (const struct dws_pool *pool, const char *host,
                        int64_t *all)
{
    const struct rset_host *found = rset_find (pool->rs, host);
    size_t taken;

    *all = found ? (int64_t)cores_of (found) : 0;
    if (!found)
        return 0;
    taken = pool->taken[found - pool->rs->hosts];
    return (int64_t)taken < *all ? *all - (int64_t)taken : 0;
}

struct dws_pool *dws_pool_create (json_t *status, dws_error_t *error)
{
    struct dws_pool *pool;
    json_t *all = json_object_get (status, "all");

    if (!(pool = calloc (1, sizeof (*pool)))) {
        dws_error_nomem (error);
        return NULL;
    }
    if (!(pool->rs = rset_create (all, NULL, error)))
        goto error;
    if (!(pool->good = calloc (pool->rs->count + 1, sizeof (*pool->good)))
        || !(pool->taken = calloc (pool->rs->count + 1,
                                   sizeof (*pool->taken)))) {
        dws_error_nomem (error);
        goto error;
    }
    for (size_t i = 0; i < pool->rs->count; i++) {
        pool->good[i] = DWS_POOL_IDLE;
        if (pool->ranks <= pool->rs->hosts[i].rank)
            pool->ranks = pool->rs->hosts[i].rank + 1;
    }
    if (set_goodness (pool, status, "allocated", DWS_POOL_BUSY, error) < 0
        || set_taken (pool, json_object_get (status, "allocated"), error) < 0
        || set_goodness (pool, status, "down", DWS_POOL_DOWN, error) < 0)
        goto error;
    return pool;
error:
    dws_pool_destroy (pool);
    return NULL;
}

json_t *dws_pool_nodes (const struct dws_pool *pool, json_t *constraint,
                        json_t *allowed, dws_error_t *error)
{
    size_t count = pool->rs->count;
    bool *by_user = calloc (count + 1, sizeof (*by_user));
    bool *by_us = calloc (count + 1, sizeof (*by_us));
    bool user = constraint && !json_is_null (constraint);
    bool us = allowed && !json_is_null (allowed);
    json_t *result = NULL;

    if (!by_user || !by_us || !(result = json_object ())) {
        dws_error_nomem (error);
        goto done;
    }
    if (user && dws_bounds_check (constraint, "constraints", false, error) < 0)
        goto error;
    if ((user && mark (pool, constraint, by_user) < 0)
        || (us && mark (pool, allowed, by_us) < 0)) {
        dws_error (error, EINVAL, "the job's constraints cannot be read");
        goto error;
    }
    for (size_t i = 0; i < count; i++) {
        if ((!user || by_user[i]) && (!us || by_us[i])
            && json_object_set_new (result, pool->rs->hosts[i].name,
                                    json_integer (pool->good[i])) < 0) {
            dws_error_nomem (error);
            goto error;
        }
    }
done:
    ERRNO_SAFE (free (by_user));
    ERRNO_SAFE (free (by_us));
    return result;
error:
    ERRNO_SAFE (json_decref (result));
    result = NULL;
    goto done;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See allocation.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "allocation.h"
#include "allocset.h"

struct rabbit {
    const char *name;
    int64_t nodes;        // of the job, below this rabbit
    int64_t allocs;       // of the set that is being laid out
};

struct plan {
    struct rabbit *rabbits;
    size_t count;
    int64_t nodes;
    int64_t min_bytes;
};

static int out_of_memory (dws_error_t *error)
{
    return dws_error (error, ENOMEM, "out of memory");
}

/* Add the hosts of one RFC 29 hostlist to 'hl'.
 */
static int append_hosts (struct hostlist *hl,
                         json_t *value,
                         dws_error_t *error)
{
    const char *s = json_string_value (value);

    if (!s || hostlist_append (hl, s) < 0)
        return dws_error (error,
                          EINVAL,
                          "R: '%.60s' is not a hostlist",
                          s ? s : "nodelist");
    return 0;
}

static struct hostlist *get_hosts (json_t *R, dws_error_t *error)
{
    struct hostlist *hl;
    json_t *nodelist;
    json_t *value;
    size_t i;

    if (!(hl = hostlist_create ())) {
        out_of_memory (error);
        return NULL;
    }
    if (json_is_string (R)) {
        if (append_hosts (hl, R, error) < 0)
            goto error;
        return hl;
    }
    nodelist = json_object_get (json_object_get (R, "execution"),
                                "nodelist");
    if (!json_is_array (nodelist)) {
        dws_error (error, EINVAL, "R has no execution.nodelist");
        goto error;
    }
    json_array_foreach (nodelist, i, value) {
        if (append_hosts (hl, value, error) < 0)
            goto error;
    }
    return hl;
error:
    hostlist_destroy (hl);
    return NULL;
}

json_t *dws_allocation_nodes (json_t *R,
                              const struct dws_topology *topo,
                              dws_error_t *error)
{
    struct hostlist *hl;
    json_t *result = NULL;
    json_t *seen = NULL;
    const char *host;

    if (!(hl = get_hosts (R, error)))
        return NULL;
    if (!(result = json_object ()) || !(seen = json_object ()))
        goto nomem;
    for (host = hostlist_first (hl); host; host = hostlist_next (hl)) {
        const char *rabbit = dws_topology_rabbit (topo, host);
        json_int_t n;

        if (!rabbit) {
            dws_error (error, EINVAL, "host %s has no rabbit", host);
            goto error;
        }
        if (json_object_get (seen, host))
            continue;
        n = json_integer_value (json_object_get (result, rabbit));
        if (json_object_set_new (seen, host, json_true ()) < 0
            || json_object_set_new (result,
                                    rabbit,
                                    json_integer (n + 1)) < 0)
            goto nomem;
    }
    json_decref (seen);
    hostlist_destroy (hl);
    return result;
nomem:
    out_of_memory (error);
error:
    json_decref (seen);
    json_decref (result);
    hostlist_destroy (hl);
    return NULL;
}

char *dws_allocation_rabbits (json_t *nodes_per_rabbit, dws_error_t *error)
{
    struct hostlist *hl;
    const char *name;
    json_t *value;
    char *s = NULL;

    if (!(hl = hostlist_create ()))
        goto done;
    json_object_foreach (nodes_per_rabbit, name, value) {
        if (hostlist_append (hl, name) < 0)
            goto done;
    }
    hostlist_sort (hl);
    s = hostlist_encode (hl);
done:
    hostlist_destroy (hl);
    if (!s)
        dws_error (error, ENOMEM, "could not encode the list of rabbits");
    return s;
}

static int plan_init (struct plan *plan,
                      json_t *nodes_per_rabbit,
                      const struct dws_allocation_opts *opts,
                      dws_error_t *error)
{
    size_t n = json_object_size (nodes_per_rabbit);
    const char *name;
    json_t *value;

    memset (plan, 0, sizeof (*plan));
    plan->min_bytes = opts->min_gib * GIB;
    if (!(plan->rabbits = calloc (n + 1, sizeof (*plan->rabbits))))
        return out_of_memory (error);
    json_object_foreach (nodes_per_rabbit, name, value) {
        struct rabbit *r = &plan->rabbits[plan->count++];

        r->name = name;
        r->nodes = json_integer_value (value);
        if (r->nodes < 1)
            return dws_error (error,
                              EINVAL,
                              "rabbit %s: the number of nodes is not a"
                              " positive integer",
                              name);
        plan->nodes += r->nodes;
    }
    return 0;
}

static int64_t at_least (int64_t size, int64_t min)
{
    return size > min ? size : min;
}

static int64_t gcd (int64_t a, int64_t b)
{
    while (b) {
        int64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

/* Give 'count' allocations out, always to the rabbit with the fewest of
 * them, and among those to the one with most of the job's nodes.
 */
static void spread_count (struct plan *plan, int64_t count)
{
    while (count-- > 0) {
        struct rabbit *best = &plan->rabbits[0];

        for (size_t i = 1; i < plan->count; i++) {
            struct rabbit *r = &plan->rabbits[i];

            if (r->allocs < best->allocs
                || (r->allocs == best->allocs && r->nodes > best->nodes))
                best = r;
        }
        best->allocs++;
    }
}

/* Shares of equal size, to each rabbit as many as it has nodes: what the
 * scheduler has set aside there is just that.
 */
static int64_t spread_by_nodes (struct plan *plan, int64_t total)
{
    int64_t d = 0;

    for (size_t i = 0; i < plan->count; i++)
        d = gcd (plan->rabbits[i].nodes, d);
    for (size_t i = 0; i < plan->count; i++)
        plan->rabbits[i].allocs = plan->rabbits[i].nodes / d;
    return div_up (total, plan->nodes / d);
}

static int64_t layout_set (struct plan *plan, const struct alloc_set *set)
{
    for (size_t i = 0; i < plan->count; i++)
        plan->rabbits[i].allocs = 0;
    switch (set->strategy) {
        case ALLOC_PER_COMPUTE:
            for (size_t i = 0; i < plan->count; i++)
                plan->rabbits[i].allocs = plan->rabbits[i].nodes;
            break;
        case ALLOC_PER_SERVER:
            for (size_t i = 0; i < plan->count; i++)
                plan->rabbits[i].allocs = 1;
            break;
        case ALLOC_ACROSS:
            if (set->count == 0)
                return spread_by_nodes (plan, set->minimum);
            spread_count (plan, set->count);
            return div_up (set->minimum, set->count);
        case ALLOC_SINGLE:
            spread_count (plan, 1);
            break;
    }
    return set->minimum;
}

static json_t *encode_set (const struct plan *plan,
                           const struct alloc_set *set,
                           int64_t size)
{
    json_t *storage = json_array ();

    for (size_t i = 0; storage && i < plan->count; i++) {
        const struct rabbit *r = &plan->rabbits[i];

        if (r->allocs == 0)
            continue;
        if (json_array_append_new (storage,
                                   json_pack ("{s:s s:I}",
                                              "name", r->name,
                                              "allocationCount",
                                              (json_int_t)r->allocs)) < 0) {
            json_decref (storage);
            return NULL;
        }
    }
    return json_pack ("{s:s s:I s:o}",
                      "label", set->label,
                      "allocationSize", (json_int_t)size,
                      "storage", storage);
}

static json_t *layout_breakdown (struct plan *plan,
                                 const struct breakdown *b)
{
    json_t *sets = json_array ();

    for (size_t i = 0; sets && i < b->nsets; i++) {
        const struct alloc_set *set = &b->sets[i];
        int64_t size = at_least (layout_set (plan, set), plan->min_bytes);

        if (json_array_append_new (sets,
                                   encode_set (plan, set, size)) < 0) {
            json_decref (sets);
            return NULL;
        }
    }
    return json_pack ("{s:{s:s s:s} s:o}",
                      "servers",
                        "name", b->servers,
                        "namespace", b->servers_namespace,
                      "allocationSets", sets);
}

json_t *dws_allocation_sets (json_t *breakdowns,
                             json_t *nodes_per_rabbit,
                             const struct dws_allocation_opts *opts,
                             dws_error_t *error)
{
    static const struct dws_allocation_opts defaults = { 0 };
    struct breakdown_list *bl;
    struct plan plan = { 0 };
    json_t *result = NULL;

    if (!(bl = breakdown_list_create (breakdowns, error)))
        return NULL;
    if (plan_init (&plan,
                   nodes_per_rabbit,
                   opts ? opts : &defaults,
                   error) < 0)
        goto error;
    if (!(result = json_array ()))
        goto nomem;
    for (size_t i = 0; i < bl->count; i++) {
        if (!bl->list[i].servers)
            continue;
        if (plan.count == 0) {
            dws_error (error, EINVAL, "the job has no node with a rabbit");
            goto error;
        }
        if (json_array_append_new (result,
                                   layout_breakdown (&plan,
                                                     &bl->list[i])) < 0)
            goto nomem;
    }
    free (plan.rabbits);
    breakdown_list_destroy (bl);
    return result;
nomem:
    out_of_memory (error);
error:
    json_decref (result);
    free (plan.rabbits);
    breakdown_list_destroy (bl);
    return NULL;
}

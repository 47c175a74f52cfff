/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Choosing rabbits before nodes; see data_first.h. dws_allocation_sets() decides what fits
 * where, so that the later layout agrees.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/directive/command.h"
#include "libutil/errno_safe.h"
#include "allocset_private.h"
#include "data_first.h"
#include "layout_private.h"
#include "shape_private.h"

const char *dws_first_fault (unsigned int commands, json_t *resources)
{
    const unsigned int good = DWS_COMMAND_JOBDW | DWS_COMMAND_COPY_IN
                            | DWS_COMMAND_COPY_OUT;
    struct shape shape;

    if (!(commands & DWS_COMMAND_JOBDW))
        return "there is no jobdw directive";
    if ((commands & ~good))
        return "only jobdw, copy_in and copy_out can be in a job that has its data"
               " before it has nodes";
    if (shape_read (&shape, resources, NULL) < 0)
        return "a job that has its data before it has nodes must ask for a number of"
               " nodes";
    if (shape.chassis)
        return "a job that has its data before it has nodes cannot ask for chassis";
    return NULL;
}

struct candidate {
    const char *name;
    int64_t up;                 // nodes that the job may have, now or later
    int64_t idle;               // and of these now
    int64_t room;               // bytes, more or less
};

struct choice {
    const struct dws_breakdowns *breakdowns;
    json_t *storages;           // {RABBIT: Storage}, or NULL
    const struct dws_allocation_opts *opts;
    struct candidate *list;     // best first
    size_t count;
    int64_t nodes;
};

static bool has_bound (const struct dws_breakdowns *breakdowns)
{
    const struct dws_breakdowns *bl = breakdowns_or_none (breakdowns);

    for (size_t i = 0; i < bl->count; i++) {
        for (size_t j = 0; j < bl->list[i].nsets; j++) {
            if (!alloc_set_unbound (&bl->list[i].sets[j]))
                return true;
        }
    }
    return false;
}

/* Can 'nodes' nodes have their storage on this rabbit? Returns 1, 0, or -1 if that
 * cannot be told.
 */
static int fits (const struct choice *c, const char *rabbit, int64_t nodes,
                 dws_error_t *error)
{
    struct dws_allocation_opts opts = *c->opts;
    json_t *counts = json_pack ("{s:I}", rabbit, (json_int_t)nodes);
    json_t *sets = NULL;

    opts.anywhere = false;
    opts.bound = true;
    opts.storages = c->storages;
    if (!counts)
        dws_error_nomem (error);
    else
        sets = dws_allocation_sets (c->breakdowns, counts, &opts, error);
    ERRNO_SAFE (json_decref (counts));
    if (sets) {
        json_decref (sets);
        return 1;
    }
    return errno == ENOSPC || errno == EHOSTDOWN ? 0 : -1;
}

static bool is_better (const struct choice *c, const struct candidate *a,
                       const struct candidate *b)
{
    int64_t idle_a = a->idle < c->nodes ? a->idle : c->nodes;
    int64_t idle_b = b->idle < c->nodes ? b->idle : c->nodes;

    if (idle_a != idle_b)
        return idle_a > idle_b;
    return a->room > b->room;
}

static int compare (const void *a, const void *b, void *arg)
{
    if (is_better (arg, a, b))
        return -1;
    if (is_better (arg, b, a))
        return 1;
    return strcmp (((const struct candidate *)a)->name,
                   ((const struct candidate *)b)->name);
}

/* Rabbits with nodes that the job may have, and that are up.
 */
static int find_candidates (struct choice *c, json_t *goodness,
                            const struct dws_topology *topo,
                            dws_error_t *error)
{
    size_t all = dws_topology_count (topo);
    const char *host;
    json_t *value;

    if (!(c->list = calloc (all + 1, sizeof (*c->list))))
        return dws_error_nomem (error);
    json_object_foreach (goodness, host, value) {
        const char *rabbit = dws_topology_rabbit (topo, host);
        int index = rabbit ? dws_topology_find (topo, rabbit) : -1;

        if (index < 0 || json_integer_value (value) == DWS_POOL_DOWN)
            continue;
        c->list[index].up++;
        c->list[index].idle += json_integer_value (value) == DWS_POOL_IDLE;
    }
    for (size_t i = 0; i < all; i++) {
        struct candidate *to = &c->list[c->count];

        if (c->list[i].up == 0)
            continue;
        *to = c->list[i];
        to->name = dws_topology_name (topo, i);
        to->room = dws_topology_capacity (topo, i)
            - dws_bytes_get (c->opts->used, to->name);
        c->count++;
    }
    qsort_r (c->list, c->count, sizeof (*c->list), compare, c);
    return 0;
}

/* Try one rabbit for all nodes. Returns 1, 0 if there is none, or -1.
 */
static int choose_one (const struct choice *c, json_t *result,
                       dws_error_t *error)
{
    for (size_t i = 0; i < c->count; i++) {
        int rc;

        if (c->list[i].up < c->nodes)
            continue;
        if ((rc = fits (c, c->list[i].name, c->nodes, error)) < 0)
            return -1;
        if (rc == 0)
            continue;
        if (json_object_set_new (result, c->list[i].name,
                                 json_integer (c->nodes)) < 0)
            return dws_error_nomem (error);
        return 1;
    }
    return 0;
}

/* The most nodes, up to 'most', that fit; -1 on failure.
 */
static int64_t most_that_fit (const struct choice *c, const char *rabbit,
                              int64_t most, dws_error_t *error)
{
    int64_t low = 0;

    while (low < most) {
        int64_t middle = (low + most + 1) / 2;
        int rc = fits (c, rabbit, middle, error);

        if (rc < 0)
            return -1;
        if (rc > 0)
            low = middle;
        else
            most = middle - 1;
    }
    return low;
}

static int choose_several (const struct choice *c, json_t *result,
                           dws_error_t *error)
{
    int64_t left = c->nodes;
    int64_t up = 0;

    for (size_t i = 0; i < c->count && left > 0; i++) {
        const struct candidate *r = &c->list[i];
        int64_t n = most_that_fit (c, r->name, r->up < left ? r->up : left,
                                   error);

        if (n < 0)
            return -1;
        if (n > 0 && json_object_set_new (result, r->name,
                                          json_integer (n)) < 0)
            return dws_error_nomem (error);
        left -= n;
    }
    if (left == 0)
        return 0;
    for (size_t i = 0; i < c->count; i++)
        up += c->list[i].up;
    if (up < c->nodes)
        return dws_error (error, ENOSPC, "the job needs %lld nodes with a rabbit,"
                          " and %lld that it may have are up",
                          (long long)c->nodes, (long long)up);
    return dws_error (error, ENOSPC, "rabbits have room for the storage of %lld"
                      " nodes, the job needs it for %lld",
                      (long long)(c->nodes - left), (long long)c->nodes);
}

json_t *dws_first_nodes (const struct dws_breakdowns *breakdowns,
                         json_t *goodness,
                         int64_t nodes,
                         const struct dws_topology *topo,
                         const struct dws_allocation_opts *opts,
                         dws_error_t *error)
{
    struct choice c = {
        .breakdowns = breakdowns,
        .opts = opts,
        .nodes = nodes,
    };
    json_t *result = NULL;
    int rc = -1;

    if (!(result = json_object ()))
        dws_error_nomem (error);
    else if (opts->storages
             && !(c.storages = layout_storages (opts->storages, error)))
        rc = -1;
    else if (!has_bound (breakdowns))
        rc = 0;
    else if (find_candidates (&c, goodness, topo, error) == 0
             && (rc = choose_one (&c, result, error)) == 0)
        rc = choose_several (&c, result, error);
    if (rc < 0) {
        ERRNO_SAFE (json_decref (result));
        result = NULL;
    }
    ERRNO_SAFE (free (c.list));
    ERRNO_SAFE (json_decref (c.storages));
    return result;
}

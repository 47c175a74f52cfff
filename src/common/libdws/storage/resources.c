/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See resources.h. How much the scheduler sets aside for a set follows from its
 * strategy alone.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "allocset_private.h"
#include "resources.h"
#include "shape_private.h"
#include "sizes.h"

/* GiB of each allocation of a set that has 'count' of them, rounded up.
 */
static int64_t alloc_gib (const struct alloc_set *set,
                          int64_t count,
                          int64_t min_gib)
{
    int64_t least = min_gib < INT32_MAX ? min_gib : INT32_MAX;

    return bytes_to_gib (alloc_set_size (set, count,
                                         least > 0 ? least * GIB : 0));
}

/* GiB that a set needs in each group of nodes. A set that is not bound to
 * nodes or rabbits is shared out evenly over the groups, rounded up: where
 * in the job its allocations come to lie is decided when R is known.
 */
static int64_t group_gib (const struct alloc_set *set,
                          const struct shape *shape,
                          int64_t min_gib)
{
    int64_t total;

    switch (set->strategy) {
        case ALLOC_PER_COMPUTE:
            if (__builtin_mul_overflow (alloc_gib (set, 1, min_gib),
                                        shape->per_group, &total))
                total = INT64_MAX / GIB;
            return total;
        case ALLOC_PER_SERVER:
            // every group may be the only one on its rabbit
            return alloc_gib (set, 1, min_gib);
        case ALLOC_ACROSS:
            if (set->count > 0) {
                total = alloc_gib (set, set->count, min_gib);
                if (__builtin_mul_overflow (total, set->count, &total))
                    total = INT64_MAX / GIB;
                return div_up (total, shape->groups);
            }
            break;
        case ALLOC_SINGLE:
            break;
    }
    return div_up (alloc_gib (set, 1, min_gib), shape->groups);
}

static int check_maximums (json_t *resources,
                           const struct dws_breakdowns *bl,
                           const struct dws_resources_opts *opts,
                           dws_error_t *error)
{
    const char *type;
    json_t *value;

    json_object_foreach (opts->maximums, type, value) {
        double max = json_number_value (value);
        struct dws_sizes sizes;
        char what[64];
        char is[DWS_SIZE_TEXT_SIZE];

        dws_sizes_read (resources, opts->directives, bl, type, &sizes);
        if (!json_is_number (value) || sizes.node.taken <= max * GIB)
            continue;
        if (!opts->directives)
            sizes.node.asked = sizes.node.taken;
        snprintf (what, sizeof (what), " of %.16s storage per node", type);
        return dws_error (error,
                          EINVAL,
                          "%s the %.16g GiB that this system allows"
                          " (rabbit.policy.maximums.%.16s)",
                          dws_size_more (&sizes.node, what, is),
                          max,
                          type);
    }
    return 0;
}

static int sum_ssd (const struct dws_breakdowns *bl,
                    const struct shape *shape,
                    const struct dws_resources_opts *opts,
                    int64_t *result,
                    dws_error_t *error)
{
    int64_t total = 0;

    for (size_t i = 0; i < bl->count; i++) {
        for (size_t j = 0; j < bl->list[i].nsets; j++) {
            const struct alloc_set *set = &bl->list[i].sets[j];
            int64_t gib = group_gib (set, shape, opts->min_gib);

            if (opts->placed || (opts->anywhere && alloc_set_unbound (set)))
                continue;
            if (__builtin_add_overflow (total, gib, &total)
                || total > INT32_MAX)
                return dws_error (error,
                                  EINVAL,
                                  "%s: more storage is asked for than can"
                                  " be counted",
                                  bl->list[i].name);
        }
    }
    *result = total;
    return 0;
}

/* The nodes of a group share a rabbit, so that its storage must fit there.
 */
static int check_rabbits (int64_t gib,
                          const struct shape *shape,
                          const struct dws_resources_opts *opts,
                          dws_error_t *error)
{
    int64_t most = opts->rabbit_bytes / GIB;
    char nodes[48] = "for each node";

    if (opts->rabbit_bytes <= 0 || gib <= most)
        return 0;
    if (shape->per_group > 1)
        snprintf (nodes, sizeof (nodes), "for each %lld nodes of a rabbit",
                  (long long)shape->per_group);
    return dws_error (error,
                      EINVAL,
                      "%lld GiB of rabbit storage are needed %s; no rabbit has"
                      " more than %lld GiB (%.4g TiB)",
                      (long long)gib,
                      nodes,
                      (long long)most,
                      (double)most / 1024.);
}

/* Unbound sets with 'anywhere' must fit on all rabbits together.
 */
static int check_total (const struct dws_breakdowns *bl,
                        const struct dws_resources_opts *opts,
                        dws_error_t *error)
{
    int64_t most = opts->total_bytes / GIB;
    int64_t total = 0;

    if (!opts->anywhere || opts->total_bytes <= 0)
        return 0;
    for (size_t i = 0; i < bl->count; i++) {
        for (size_t j = 0; j < bl->list[i].nsets; j++) {
            const struct alloc_set *set = &bl->list[i].sets[j];

            if (alloc_set_unbound (set)
                && __builtin_add_overflow (total,
                                           alloc_gib (set, 1, opts->min_gib),
                                           &total))
                total = INT64_MAX;
        }
    }
    if (total <= most)
        return 0;
    return dws_error (error,
                      EINVAL,
                      "%lld GiB of rabbit storage are needed; all rabbits"
                      " together have %lld GiB (%.4g TiB)",
                      (long long)total,
                      (long long)most,
                      (double)most / 1024.);
}

static bool has_storage (const struct dws_breakdowns *bl)
{
    for (size_t i = 0; i < bl->count; i++) {
        if (bl->list[i].nsets > 0)
            return true;
    }
    return false;
}

static json_t *make_ssd (int64_t gib)
{
    return json_pack ("{s:s s:I s:b}",
                      "type", "ssd",
                      "count", (json_int_t)gib,
                      "exclusive", 1);
}

bool dws_resources_has_ssd (json_t *resources)
{
    json_t *value;
    size_t i;

    json_array_foreach (resources, i, value) {
        if (strcmp (shape_type (value), "ssd") == 0
            || dws_resources_has_ssd (json_object_get (value, "with")))
            return true;
    }
    return false;
}

static void drop_ssd (json_t *resources)
{
    size_t i = 0;

    while (i < json_array_size (resources)) {
        json_t *value = json_array_get (resources, i);

        if (strcmp (shape_type (value), "ssd") == 0)
            (void)json_array_remove (resources, i);
        else {
            drop_ssd (json_object_get (value, "with"));
            i++;
        }
    }
}

/* Copy the resources of the job without storage. An ssd was added by this file before, or
 * by a user who wants storage beyond the limits: only the directives decide how much
 * storage a job gets.
 */
static json_t *without_ssd (json_t *resources, dws_error_t *error)
{
    json_t *copy = json_deep_copy (resources);

    if (copy)
        drop_ssd (copy);
    else
        dws_error_nomem (error);
    return copy;
}

/* {node} becomes {slot[rabbit]{node, ssd}}. In the other forms the group is
 * there already and only the ssd is added.
 */
static json_t *rewrite (json_t *resources,
                        const struct shape *shape,
                        int64_t gib)
{
    json_t *copy;
    json_t *top;

    if (!(copy = json_deep_copy (resources)))
        return NULL;
    top = json_array_get (copy, shape->top_index);
    if (shape->top != shape->node) {
        if (json_array_append_new (json_object_get (top, "with"),
                                   make_ssd (gib)) < 0)
            goto error;
        return copy;
    }
    if (json_object_set_new (top, "count", json_integer (1)) < 0
        || json_array_set_new (copy,
                               shape->top_index,
                               json_pack ("{s:s s:I s:s s:[O,o]}",
                                          "type", "slot",
                                          "count",
                                          (json_int_t)shape->groups,
                                          "label", "rabbit",
                                          "with",
                                          top,
                                          make_ssd (gib))) < 0)
        goto error;
    return copy;
error:
    json_decref (copy);
    return NULL;
}

json_t *dws_resources_apply (json_t *resources,
                             const struct dws_breakdowns *breakdowns,
                             const struct dws_resources_opts *opts,
                             dws_error_t *error)
{
    static const struct dws_resources_opts defaults = { 0 };
    const struct dws_breakdowns *bl = breakdowns_or_none (breakdowns);
    struct shape shape = { 0 };
    json_t *plain = NULL;
    json_t *result = NULL;
    int64_t gib = 0;

    if (!opts)
        opts = &defaults;
    // no resources at all are refused below
    if (resources && !(plain = without_ssd (resources, error)))
        goto done;
    // without storage (destroy_persistent) any resources will do
    if ((!plain || has_storage (bl))
        && (shape_read (&shape, plain, error) < 0
            || sum_ssd (bl, &shape, opts, &gib, error) < 0
            || check_maximums (plain, bl, opts, error) < 0
            || check_rabbits (gib, &shape, opts, error) < 0
            || check_total (bl, opts, error) < 0))
        goto done;
    if (gib == 0)
        result = json_incref (plain);
    else if (!(result = rewrite (plain, &shape, gib)))
        dws_error_nomem (error);
done:
    json_decref (plain);
    return result;
}

int dws_resources_check (json_t *resources, dws_error_t *error)
{
    struct shape shape;

    return shape_read (&shape, resources, error);
}

int64_t dws_resources_nodes (json_t *resources)
{
    struct shape shape;

    if (shape_read (&shape, resources, NULL) < 0)
        return INT32_MAX;
    return shape.groups * shape.per_group;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See breakdown.h. How much a set takes follows from its strategy alone; the
 * set's label is used only to find the site's limit for that kind of file
 * system.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/directive/capacity.h"
#include "libdws/directive/command.h"
#include "libutil/errno_safe.h"
#include "allocset_private.h"
#include "breakdown.h"
#include "drives.h"

/* What the resources look like.
 */
struct shape {
    json_t *top;          // borrowed: the one top level entry with nodes
    size_t top_index;
    json_t *node;         // borrowed: the node entry, 'top' or within it
    int64_t groups;       // count of slots or chassis
    int64_t per_group;    // nodes in each
    bool chassis;         // a group is all there is below one rabbit
};

static const char *get_type (json_t *resource)
{
    const char *type = json_string_value (json_object_get (resource,
                                                           "type"));
    return type ? type : "";
}

static bool is_type (json_t *resource, const char *type)
{
    return strcmp (get_type (resource), type) == 0;
}

/* 'what' is for the message. A count may be a range in jobspec, but how
 * much storage is needed follows from the number, so it must be fixed.
 */
static int64_t get_count (json_t *resource,
                          const char *what,
                          dws_error_t *error)
{
    json_t *count = json_object_get (resource, "count");
    json_int_t min = 0;
    json_int_t max = -1;

    if (json_is_integer (count))
        min = max = json_integer_value (count);
    else if (json_is_object (count))
        (void)json_unpack (count, "{s:I s:I}", "min", &min, "max", &max);
    if (min != max)
        return dws_error (error,
                          EINVAL,
                          "rabbit storage needs a fixed number of %s, not a"
                          " range",
                          what);
    if (min < 1 || min > INT32_MAX)
        return dws_error (error,
                          EINVAL,
                          "jobspec resources: count of %s is not a positive"
                          " integer",
                          what);
    return min;
}

static int find_top (struct shape *shape,
                     json_t *resources,
                     dws_error_t *error)
{
    size_t i;
    json_t *value;

    json_array_foreach (resources, i, value) {
        const char *type = get_type (value);

        if (strcmp (type, "node") == 0
            || strcmp (type, "chassis") == 0
            || strcmp (type, "slot") == 0) {
            if (shape->top)
                return dws_error (error,
                                  EINVAL,
                                  "jobspec resources must have one top level"
                                  " 'node', 'chassis' or 'slot' entry, there"
                                  " are several");
            shape->top = value;
            shape->top_index = i;
        }
        else if (strcmp (type, "storage_node") != 0
                 && strcmp (type, "ssd") != 0) {
            return dws_error (error,
                              EINVAL,
                              "rabbit storage is given to nodes: ask for a"
                              " number of nodes (-N), not for '%.60s'",
                              type);
        }
    }
    if (!shape->top)
        return dws_error (error,
                          EINVAL,
                          "rabbit storage is given to nodes: ask for a"
                          " number of nodes (-N)");
    return 0;
}

static int find_node (struct shape *shape, dws_error_t *error)
{
    const char *type = get_type (shape->top);
    size_t i;
    json_t *value;

    json_array_foreach (json_object_get (shape->top, "with"), i, value) {
        if (is_type (value, "node")) {
            if (shape->node)
                return dws_error (error,
                                  EINVAL,
                                  "jobspec resources: there are several"
                                  " 'node' entries below '%s'",
                                  type);
            shape->node = value;
        }
        else if (shape->chassis && !is_type (value, "storage_node")
                 && !is_type (value, "ssd"))
            return dws_error (error,
                              EINVAL,
                              "jobspec resources: '%.60s' cannot stand below"
                              " '%s' in a job with rabbit storage",
                              get_type (value),
                              type);
    }
    if (!shape->node)
        return dws_error (error,
                          EINVAL,
                          "rabbit storage is given to nodes: ask for a"
                          " number of nodes (-N) besides tasks or cores");
    return 0;
}

static int get_shape (struct shape *shape,
                      json_t *resources,
                      dws_error_t *error)
{
    memset (shape, 0, sizeof (*shape));
    if (!json_is_array (resources) || json_array_size (resources) == 0)
        return dws_error (error,
                          EINVAL,
                          "jobspec resources must be a list that is not"
                          " empty");
    if (find_top (shape, resources, error) < 0)
        return -1;
    shape->chassis = is_type (shape->top, "chassis");
    if (is_type (shape->top, "node"))
        shape->node = shape->top;
    else if (find_node (shape, error) < 0)
        return -1;
    shape->groups = get_count (shape->top, get_type (shape->top), error);
    if (shape->groups < 0)
        return -1;
    shape->per_group = 1;
    if (shape->node != shape->top) {
        shape->per_group = get_count (shape->node, "node", error);
        if (shape->per_group < 0)
            return -1;
    }
    return 0;
}

/* GiB that one allocation takes, at least.
 */
static int64_t alloc_gib (int64_t bytes, int64_t min_gib)
{
    int64_t gib = bytes_to_gib (bytes);

    return gib > min_gib ? gib : min_gib;
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
            if (__builtin_mul_overflow (alloc_gib (set->minimum, min_gib),
                                        shape->per_group, &total))
                total = INT64_MAX / GIB;
            return total;
        case ALLOC_PER_SERVER:
            // every group may be the only one on its rabbit
            return alloc_gib (set->minimum, min_gib);
        case ALLOC_ACROSS:
            if (set->count > 0) {
                total = alloc_gib (div_up (set->minimum, set->count),
                                   min_gib);
                if (__builtin_mul_overflow (total, set->count, &total))
                    total = INT64_MAX / GIB;
                return div_up (total, shape->groups);
            }
            break;
        case ALLOC_SINGLE:
            break;
    }
    return div_up (alloc_gib (set->minimum, min_gib), shape->groups);
}

/* The file system type whose limit a set counts against. Of a Lustre file
 * system only the data counts: the user has no say in the rest.
 */
static const char *limit_key (const char *label)
{
    if (strcmp (label, "ost") == 0)
        return "lustre";
    if (strcmp (label, "mdt") == 0
        || strcmp (label, "mgt") == 0
        || strcmp (label, "mgtmdt") == 0)
        return NULL;
    return label;
}

static int check_limits (const struct breakdown_list *bl,
                         const struct shape *shape,
                         const struct dws_breakdown_opts *opts,
                         dws_error_t *error)
{
    const char *type;
    json_t *value;

    json_object_foreach (opts->maximums, type, value) {
        double max = json_number_value (value);
        int64_t total = 0;

        for (size_t i = 0; i < bl->count; i++) {
            for (size_t j = 0; j < bl->list[i].nsets; j++) {
                const struct alloc_set *set = &bl->list[i].sets[j];
                const char *key = limit_key (set->label);

                if (key && strcmp (key, type) == 0)
                    total += group_gib (set, shape, opts->min_gib);
            }
        }
        if (json_is_number (value) && total > max * shape->per_group)
            return dws_error (error,
                              EINVAL,
                              "%lld GiB of %s storage per node is more than"
                              " the %.16g GiB that this system allows",
                              (long long)div_up (total, shape->per_group),
                              type,
                              max);
    }
    return 0;
}

static int sum_ssd (const struct breakdown_list *bl,
                    const struct shape *shape,
                    const struct dws_breakdown_opts *opts,
                    int64_t *result,
                    dws_error_t *error)
{
    int64_t total = 0;

    for (size_t i = 0; i < bl->count; i++) {
        for (size_t j = 0; j < bl->list[i].nsets; j++) {
            const struct alloc_set *set = &bl->list[i].sets[j];
            int64_t gib = group_gib (set, shape, opts->min_gib);

            if (opts->placed || (opts->anywhere && alloc_set_roams (set)))
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
                          const struct dws_breakdown_opts *opts,
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

/* What lies anywhere must fit on all rabbits together.
 */
static int check_total (const struct breakdown_list *bl,
                        const struct dws_breakdown_opts *opts,
                        dws_error_t *error)
{
    int64_t most = opts->total_bytes / GIB;
    int64_t total = 0;

    if (!opts->anywhere || opts->total_bytes <= 0)
        return 0;
    for (size_t i = 0; i < bl->count; i++) {
        for (size_t j = 0; j < bl->list[i].nsets; j++) {
            const struct alloc_set *set = &bl->list[i].sets[j];

            if (alloc_set_roams (set)
                && __builtin_add_overflow (total,
                                           alloc_gib (set->minimum,
                                                      opts->min_gib),
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

static bool has_storage (const struct breakdown_list *bl)
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

static void drop_ssd (json_t *resources)
{
    size_t i = 0;

    while (i < json_array_size (resources)) {
        json_t *value = json_array_get (resources, i);

        if (is_type (value, "ssd"))
            (void)json_array_remove (resources, i);
        else {
            drop_ssd (json_object_get (value, "with"));
            i++;
        }
    }
}

/* A copy of what the job asks for besides storage. An ssd is what this file
 * has added before, or what somebody would like to have without its limits: how
 * much storage a job gets is what its directives say.
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

json_t *dws_breakdown_apply (json_t *resources,
                             json_t *breakdowns,
                             const struct dws_breakdown_opts *opts,
                             dws_error_t *error)
{
    static const struct dws_breakdown_opts defaults = { 0 };
    struct breakdown_list *bl;
    struct shape shape = { 0 };
    json_t *plain = NULL;
    json_t *result = NULL;
    int64_t gib = 0;

    if (!opts)
        opts = &defaults;
    if (!(bl = breakdown_list_create (breakdowns, error)))
        return NULL;
    // no resources at all are refused below
    if (resources && !(plain = without_ssd (resources, error)))
        goto done;
    // without storage (destroy_persistent) any resources will do
    if ((!plain || has_storage (bl))
        && (get_shape (&shape, plain, error) < 0
            || sum_ssd (bl, &shape, opts, &gib, error) < 0
            || check_limits (bl, &shape, opts, error) < 0
            || check_rabbits (gib, &shape, opts, error) < 0
            || check_total (bl, opts, error) < 0))
        goto done;
    if (gib == 0)
        result = json_incref (plain);
    else if (!(result = rewrite (plain, &shape, gib)))
        dws_error_nomem (error);
done:
    json_decref (plain);
    breakdown_list_destroy (bl);
    return result;
}

/* What a directive asks for, as a set of the type that the storage system makes
 * of it. Returns false if that cannot be told.
 */
static bool foresee_set (struct alloc_set *set, const char *directive)
{
    char type[16];
    char capacity[64];

    if (!(dws_command (directive)
          & (DWS_COMMAND_JOBDW | DWS_COMMAND_CREATE_PERSISTENT))
        || !dws_command_arg (directive, "type", type, sizeof (type))
        || !dws_command_arg (directive, "capacity", capacity,
                             sizeof (capacity))
        || dws_capacity_parse (capacity, &set->minimum) < 0
        || set->minimum == 0)
        return false;
    if (strcmp (type, "lustre") == 0)
        set->strategy = ALLOC_ACROSS;
    else if (dws_drives_shared (type))
        set->strategy = ALLOC_PER_COMPUTE;
    else
        return false;
    return true;
}

int dws_breakdown_foresee (json_t *resources,
                           json_t *directives,
                           const struct dws_breakdown_opts *opts,
                           dws_error_t *error)
{
    struct breakdown b = { .name = "the directives" };
    struct breakdown_list bl = { .list = &b, .count = 1 };
    struct shape shape;
    int64_t gib;
    size_t i;
    json_t *value;
    int rc = 0;

    if (opts->rabbit_bytes <= 0 || get_shape (&shape, resources, NULL) < 0)
        return 0;
    if (!(b.sets = calloc (json_array_size (directives) + 1,
                           sizeof (*b.sets))))
        return dws_error_nomem (error);
    json_array_foreach (directives, i, value) {
        if (json_is_string (value)
            && foresee_set (&b.sets[b.nsets], json_string_value (value)))
            b.nsets++;
    }
    if (sum_ssd (&bl, &shape, opts, &gib, error) < 0
        || check_rabbits (gib, &shape, opts, error) < 0
        || check_total (&bl, opts, error) < 0)
        rc = -1;
    ERRNO_SAFE (free (b.sets));
    return rc;
}

static int64_t add_sizes (int64_t a, int64_t b)
{
    return __builtin_add_overflow (a, b, &a) ? INT64_MAX : a;
}

void dws_breakdown_asked (json_t *resources,
                          json_t *directives,
                          struct dws_asked *asked)
{
    struct shape shape;
    int64_t nodes = 1;
    size_t i;
    json_t *value;

    *asked = (struct dws_asked){ 0 };
    if (get_shape (&shape, resources, NULL) == 0
        && __builtin_mul_overflow (shape.groups, shape.per_group, &nodes))
        nodes = INT64_MAX;
    json_array_foreach (directives, i, value) {
        struct alloc_set set = { 0 };
        int64_t node;
        int64_t job;

        if (!json_is_string (value)
            || !foresee_set (&set, json_string_value (value)))
            continue;
        node = job = set.minimum;
        if (set.strategy == ALLOC_ACROSS)
            node = div_up (set.minimum, nodes);
        else if (__builtin_mul_overflow (set.minimum, nodes, &job))
            job = INT64_MAX;
        asked->node = add_sizes (asked->node, node);
        asked->job = add_sizes (asked->job, job);
    }
}

int64_t dws_breakdown_nodes (json_t *resources)
{
    struct shape shape;

    if (get_shape (&shape, resources, NULL) < 0)
        return INT32_MAX;
    return shape.groups * shape.per_group;
}

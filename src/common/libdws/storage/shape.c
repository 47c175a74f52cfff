/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See shape_private.h.
 */

#include <errno.h>
#include <string.h>

#include "shape_private.h"

const char *shape_type (json_t *resource)
{
    const char *type = json_string_value (json_object_get (resource,
                                                           "type"));
    return type ? type : "";
}

static bool is_type (json_t *resource, const char *type)
{
    return strcmp (shape_type (resource), type) == 0;
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
        const char *type = shape_type (value);

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
    const char *type = shape_type (shape->top);
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
                              shape_type (value),
                              type);
    }
    if (!shape->node)
        return dws_error (error,
                          EINVAL,
                          "rabbit storage is given to nodes: ask for a"
                          " number of nodes (-N) besides tasks or cores");
    return 0;
}

int shape_read (struct shape *shape, json_t *resources, dws_error_t *error)
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
    shape->groups = get_count (shape->top, shape_type (shape->top), error);
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

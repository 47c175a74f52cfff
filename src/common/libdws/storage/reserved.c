/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See reserved.h.
 */

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "allocset_private.h"
#include "bytes.h"
#include "reserved.h"

/* The chassis and its rabbit are not in the graph of every R, but the nodes
 * and ssds are, and what they have in common is the path above them.
 */
static char *parent_of (const char *path)
{
    const char *slash = strrchr (path, '/');

    return strndup (path, slash ? (size_t)(slash - path) : 0);
}

/* Fluxion leaves out a name that is the type and the id, and the path ends with the
 * name; Fluxion also leaves out a size of 1.
 */
static const char *name_of (const char *name, const char *path)
{
    const char *slash = strrchr (path, '/');

    return *name || !slash ? name : slash + 1;
}

/* Sort one vertex into 'gib' (path of chassis to GiB) or 'rabbits' (path of
 * chassis to name of rabbit).
 */
static int take_vertex (json_t *vertex,
                        const struct dws_topology *topo,
                        json_t *gib,
                        json_t *rabbits)
{
    const char *type;
    const char *path;
    const char *name = "";
    const char *rabbit;
    json_int_t size = 1;
    char *parent;
    int rc = 0;

    if (json_unpack (vertex,
                     "{s:{s:s s?s s?I s:{s:s}}}",
                     "metadata",
                       "type", &type,
                       "name", &name,
                       "size", &size,
                       "paths",
                         "containment", &path) < 0)
        return 0;
    if (!(parent = parent_of (path)))
        return -1;
    if (strcmp (type, "ssd") == 0)
        rc = size > 0 ? dws_bytes_add (gib, parent, size) : 0;
    else if (strcmp (type, "node") == 0
             && (rabbit = dws_topology_rabbit (topo, name_of (name, path))))
        rc = json_object_set_new (rabbits, parent, json_string (rabbit));
    free (parent);
    return rc;
}

static int add_gib (json_t *result, const char *rabbit, json_int_t n)
{
    if (n > LLONG_MAX / GIB)
        n = LLONG_MAX / GIB;
    return n > 0 ? dws_bytes_add (result, rabbit, n * GIB) : 0;
}

json_t *dws_reserved (json_t *R,
                      const struct dws_topology *topo,
                      dws_error_t *error)
{
    json_t *gib = json_object ();
    json_t *rabbits = json_object ();
    json_t *result = json_object ();
    json_t *vertices = NULL;
    json_t *counted = NULL;
    const char *path;
    json_t *value;
    size_t i;

    if (!gib || !rabbits || !result)
        goto nomem;
    (void)json_unpack (R,
                       "{s:{s?{s:o} s?o}}",
                       "scheduling",
                         "graph",
                           "nodes", &vertices,
                         "rabbits", &counted);
    json_object_foreach (counted, path, value) {
        if (add_gib (result, path, json_integer_value (value)) < 0)
            goto nomem;
    }
    json_array_foreach (vertices, i, value) {
        if (take_vertex (value, topo, gib, rabbits) < 0)
            goto nomem;
    }
    json_object_foreach (gib, path, value) {
        const char *rabbit = json_string_value (json_object_get (rabbits,
                                                                 path));

        if (rabbit && add_gib (result, rabbit, json_integer_value (value)) < 0)
            goto nomem;
    }
    json_decref (gib);
    json_decref (rabbits);
    return result;
nomem:
    json_decref (gib);
    json_decref (rabbits);
    json_decref (result);
    dws_error_nomem (error);
    return NULL;
}

json_t *dws_reserved_ssds (json_t *R, dws_error_t *error)
{
    json_t *result = json_object ();
    json_t *vertices = NULL;
    json_t *vertex;
    size_t i;

    (void)json_unpack (R, "{s:{s:{s:o}}}", "scheduling", "graph", "nodes",
                       &vertices);
    json_array_foreach (vertices, i, vertex) {
        const char *type = "";
        const char *path = NULL;

        (void)json_unpack (vertex, "{s:{s:s s:{s:s}}}",
                           "metadata", "type", &type,
                             "paths", "containment", &path);
        if (path && strcmp (type, "ssd") == 0
            && json_object_set_new (result, path, json_true ()) < 0) {
            json_decref (result);
            result = NULL;
            break;
        }
    }
    if (!result)
        dws_error_nomem (error);
    return result;
}

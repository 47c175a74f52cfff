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
                        struct dws_bytes *gib,
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
        dws_bytes_add (gib, parent, size > 0 ? size : 0);
    else if (strcmp (type, "node") == 0
             && (rabbit = dws_topology_rabbit (topo, name_of (name, path))))
        rc = json_object_set_new (rabbits, parent, json_string (rabbit));
    free (parent);
    return rc;
}

static void add_gib (struct dws_bytes *map, const char *rabbit, int64_t n)
{
    if (n > LLONG_MAX / GIB)
        n = LLONG_MAX / GIB;
    if (n > 0)
        dws_bytes_add (map, rabbit, n * GIB);
}

int dws_reserved (json_t *R, const struct dws_topology *topo,
                  struct dws_bytes *reserved, dws_error_t *error)
{
    struct dws_bytes gib = { 0 };
    json_t *rabbits = json_object ();
    json_t *vertices = NULL;
    json_t *counted = NULL;
    const char *rabbit;
    json_t *value;
    size_t i;
    int rc = rabbits ? 0 : -1;

    (void)json_unpack (R,
                       "{s:{s?{s:o} s?o}}",
                       "scheduling",
                         "graph",
                           "nodes", &vertices,
                         "rabbits", &counted);
    json_object_foreach (counted, rabbit, value)
        add_gib (reserved, rabbit, json_integer_value (value));
    json_array_foreach (vertices, i, value) {
        if (rc == 0)
            rc = take_vertex (value, topo, &gib, rabbits);
    }
    for (i = 0; i < gib.count; i++) {
        value = json_object_get (rabbits, gib.list[i].rabbit);
        if (value)
            add_gib (reserved, json_string_value (value), gib.list[i].bytes);
    }
    if (rc < 0 || gib.lost || reserved->lost)
        rc = dws_error_nomem (error);
    dws_bytes_clear (&gib);
    json_decref (rabbits);
    return rc;
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

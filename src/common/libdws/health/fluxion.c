/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See fluxion.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "libutil/errno_safe.h"
#include "fluxion.h"
#include "health.h"

struct dws_fluxion {
    json_t *rabbits;    // {NAME: {"path": S, "ssds": N, "up": N or -1}}
    json_t *marked;     // paths of nodes that have the property
};

void dws_fluxion_destroy (struct dws_fluxion *fx)
{
    if (fx) {
        ERRNO_SAFE_BLOCK;
        json_decref (fx->rabbits);
        json_decref (fx->marked);
        free (fx);
    }
}

static int learn_rabbit (struct dws_fluxion *fx, const char *path,
                         json_t *properties)
{
    const char *name = NULL;
    const char *count = NULL;

    (void)json_unpack (properties, "{s?s s?s}", "rabbit", &name,
                       "ssdcount", &count);
    if (!name || !count)
        return 0;
    return json_object_set_new (fx->rabbits, name,
                                json_pack ("{s:s s:i s:i}",
                                           "path", path,
                                           "ssds", atoi (count),
                                           "up", -1));
}

struct dws_fluxion *dws_fluxion_create (json_t *R, dws_error_t *error)
{
    struct dws_fluxion *fx;
    json_t *vertices = NULL;
    json_t *vertex;
    size_t index;

    if (!(fx = calloc (1, sizeof (*fx)))
        || !(fx->rabbits = json_object ())
        || !(fx->marked = json_object ()))
        goto nomem;
    (void)json_unpack (R, "{s:{s:o}}", "graph", "nodes", &vertices);
    json_array_foreach (vertices, index, vertex) {
        const char *path;
        json_t *properties = NULL;

        if (json_unpack (vertex,
                         "{s:{s:{s:s} s?o}}",
                         "metadata",
                           "paths", "containment", &path,
                           "properties", &properties) < 0)
            continue;
        if (json_object_get (properties, DWS_BAD_PROPERTY)
            && json_object_set_new (fx->marked, path, json_true ()) < 0)
            goto nomem;
        if (learn_rabbit (fx, path, properties) < 0)
            goto nomem;
    }
    return fx;
nomem:
    dws_fluxion_destroy (fx);
    dws_error_nomem (error);
    return NULL;
}

size_t dws_fluxion_count (const struct dws_fluxion *fx)
{
    return json_object_size (fx->rabbits);
}

/* The path of a host, or NULL with errno ENOENT or ENOMEM.
 */
static char *host_path (struct dws_fluxion *fx, const char *host,
                        const struct dws_topology *topo)
{
    const char *rabbit = dws_topology_rabbit (topo, host);
    const char *parent = NULL;
    char *path;

    if (rabbit)
        (void)json_unpack (json_object_get (fx->rabbits, rabbit), "{s:s}",
                           "path", &parent);
    if (!parent) {
        errno = ENOENT;
        return NULL;
    }
    if (asprintf (&path, "%s/%s", parent, host) < 0) {
        errno = ENOMEM;
        return NULL;
    }
    return path;
}

static json_t *wanted_paths (struct dws_fluxion *fx, const char *bad,
                             const struct dws_topology *topo)
{
    json_t *wanted = json_object ();
    struct hostlist *hl = hostlist_decode (bad);
    const char *host;
    int rc = wanted && hl ? 0 : -1;

    for (host = hl ? hostlist_first (hl) : NULL; host && rc == 0;
         host = hostlist_next (hl)) {
        char *path = host_path (fx, host, topo);

        if (path)
            rc = json_object_set_new (wanted, path, json_true ());
        else if (errno != ENOENT)
            rc = -1;
        free (path);
    }
    hostlist_destroy (hl);
    if (rc < 0) {
        json_decref (wanted);
        return NULL;
    }
    return wanted;
}

/* The keys of 'a' that are not in 'b'.
 */
static json_t *difference (json_t *a, json_t *b)
{
    json_t *array = json_array ();
    const char *key;
    json_t *value;

    json_object_foreach (a, key, value) {
        if (!json_object_get (b, key)
            && json_array_append_new (array, json_string (key)) < 0) {
            json_decref (array);
            return NULL;
        }
    }
    return array;
}

int dws_fluxion_properties (struct dws_fluxion *fx,
                            const char *bad,
                            const struct dws_topology *topo,
                            json_t **set,
                            json_t **clear,
                            dws_error_t *error)
{
    json_t *wanted = wanted_paths (fx, bad, topo);

    *set = wanted ? difference (wanted, fx->marked) : NULL;
    *clear = wanted ? difference (fx->marked, wanted) : NULL;
    if (!*set || !*clear) {
        json_decref (wanted);
        json_decref (*set);
        json_decref (*clear);
        *set = NULL;
        *clear = NULL;
        return dws_error_nomem (error);
    }
    json_decref (fx->marked);
    fx->marked = wanted;
    return 0;
}

/* How many of the rabbit's ssds can be used.
 */
static int usable (json_t *state, int ssds, int64_t mapped)
{
    int up = 0;
    json_int_t capacity = 0;

    if (json_unpack (state, "{s:b s:I}", "up", &up,
                     "capacity", &capacity) < 0 || !up)
        return 0;
    if (mapped <= 0 || capacity >= mapped)
        return ssds;
    return (int)((double)ssds * capacity / mapped);
}

static int change (json_t *changes, const char *path, int from, int to,
                   const char *status)
{
    char name[24];

    for (int i = from; i < to; i++) {
        snprintf (name, sizeof (name), "/ssd%d", i);
        if (json_array_append_new (changes,
                                   json_pack ("[s+ s]", path, name,
                                              status)) < 0)
            return -1;
    }
    return 0;
}

static int change_rabbit (json_t *changes, json_t *entry, json_t *state,
                          int64_t mapped)
{
    const char *path;
    int ssds;
    int was;
    int now;

    if (json_unpack (entry, "{s:s s:i s:i}", "path", &path, "ssds", &ssds,
                     "up", &was) < 0)
        return 0;
    now = usable (state, ssds, mapped);
    if (was < 0) {
        if (change (changes, path, 0, now, "up") < 0
            || change (changes, path, now, ssds, "down") < 0)
            return -1;
    }
    else if (change (changes, path, was, now, "up") < 0
             || change (changes, path, now, was, "down") < 0)
        return -1;
    return json_object_set_new (entry, "up", json_integer (now));
}

json_t *dws_fluxion_ssds (struct dws_fluxion *fx,
                          json_t *rabbits,
                          const struct dws_topology *topo,
                          dws_error_t *error)
{
    json_t *changes = json_array ();
    const char *name;
    json_t *entry;

    if (!changes)
        goto nomem;
    json_object_foreach (fx->rabbits, name, entry) {
        int index = dws_topology_find (topo, name);

        if (index >= 0
            && change_rabbit (changes, entry,
                              json_object_get (rabbits, name),
                              dws_topology_capacity (topo, index)) < 0)
            goto nomem;
    }
    return changes;
nomem:
    json_decref (changes);
    dws_error_nomem (error);
    return NULL;
}

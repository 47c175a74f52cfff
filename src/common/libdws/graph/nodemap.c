/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See nodemap.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <flux/hostlist.h>

#include "libdws/util/lists.h"
#include "nodemap.h"

/* The hosts of each rabbit, and the rabbits in the order of their first host.
 */
struct map {
    struct hostlist **hosts;    // by number of the rabbit, NULL: none
    int *left_out;              // how many of these
    int *order;
    int count;
};

static int add_host (struct map *map, int index, const char *host)
{
    if (!map->hosts[index]) {
        if (!(map->hosts[index] = hostlist_create ()))
            return -1;
        map->order[map->count++] = index;
    }
    return dws_hostlist_append (map->hosts[index], host) < 0 ? -1 : 0;
}

static int fill (struct map *map, struct hostlist *all, struct hostlist *left,
                 const struct dws_topology *topo)
{
    const char *host;

    for (host = hostlist_first (all); host; host = hostlist_next (all)) {
        int index = dws_topology_find_host (topo, host);

        if (index < 0)
            continue;
        if (add_host (map, index, host) < 0)
            return -1;
        if (hostlist_find (left, host) >= 0)
            map->left_out[index]++;
    }
    return 0;
}

/* Put the hosts of a rabbit into the order in which its Storage has them.
 */
static int sort_hosts (struct hostlist **hosts, json_t *storage)
{
    struct hostlist *sorted;
    json_t *computes = NULL;
    json_t *entry;
    size_t i;

    (void)json_unpack (storage, "{s:{s:{s:o}}}",
                       "status", "access", "computes", &computes);
    if (json_array_size (computes) == 0)
        return 0;
    if (!(sorted = hostlist_create ()))
        return -1;
    json_array_foreach (computes, i, entry) {
        const char *name = json_string_value (json_object_get (entry, "name"));

        if (!name || hostlist_find (*hosts, name) < 0)
            continue;
        if (dws_hostlist_append (sorted, name) < 0
            || hostlist_delete (*hosts, name) < 0)
            goto error;
    }
    if (hostlist_append_list (sorted, *hosts) < 0)
        goto error;
    hostlist_destroy (*hosts);
    *hosts = sorted;
    return 0;
error:
    hostlist_destroy (sorted);
    return -1;
}

static int sort_all (struct map *map, const struct dws_topology *topo,
                     json_t *storages)
{
    for (int i = 0; i < map->count; i++) {
        int index = map->order[i];
        const char *name = dws_topology_name (topo, index);

        if (sort_hosts (&map->hosts[index],
                        json_object_get (storages, name)) < 0)
            return -1;
    }
    return 0;
}

static char *encode_map (const struct map *map, const struct dws_topology *topo)
{
    char *result = NULL;
    size_t size;
    FILE *stream;
    bool first = true;
    bool ok = true;

    if (!(stream = open_memstream (&result, &size)))
        return NULL;
    for (int i = 0; i < map->count && ok; i++) {
        int index = map->order[i];
        char *s;

        if (map->left_out[index] == hostlist_count (map->hosts[index]))
            continue;
        s = hostlist_encode (map->hosts[index]);
        ok = s && fprintf (stream, "%s%s=%s", first ? "" : ";",
                           dws_topology_name (topo, index), s) > 0;
        first = false;
        free (s);
    }
    if (fclose (stream) != 0 || !ok) {
        free (result);
        return NULL;
    }
    return result;
}

static char *make_map (struct hostlist *all, struct hostlist *left,
                       const struct dws_topology *topo, json_t *storages)
{
    size_t count = dws_topology_count (topo) + 1;
    struct map map = {
        .hosts = calloc (count, sizeof (map.hosts[0])),
        .left_out = calloc (count, sizeof (map.left_out[0])),
        .order = calloc (count, sizeof (map.order[0])),
    };
    char *result = NULL;

    if (map.hosts && map.left_out && map.order
        && fill (&map, all, left, topo) == 0
        && sort_all (&map, topo, storages) == 0)
        result = encode_map (&map, topo);
    for (int i = 0; i < map.count; i++)
        hostlist_destroy (map.hosts[map.order[i]]);
    free (map.hosts);
    free (map.left_out);
    free (map.order);
    return result;
}

char *dws_nodemap (const char *hosts,
                   const struct dws_topology *topo,
                   const struct dws_nodemap_opts *opts,
                   dws_error_t *error)
{
    const char *left_out = opts->left_out ? opts->left_out : "";
    struct hostlist *all = dws_hostlist_decode (hosts);
    struct hostlist *left = dws_hostlist_decode (left_out);
    char *result = NULL;

    if (!all || !left)
        dws_error (error, EINVAL, "malformed hostlist '%s'",
                   all ? left_out : hosts);
    else if (!(result = make_map (all, left, topo, opts->storages)))
        dws_error_nomem (error);
    hostlist_destroy (all);
    hostlist_destroy (left);
    return result;
}

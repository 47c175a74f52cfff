/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See nodemap.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <flux/hostlist.h>

#include "nodemap.h"

/* The hosts of each rabbit, and the rabbits in the order of their first host.
 */
struct map {
    struct hostlist **hosts;    // by number of the rabbit, NULL: none
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
    return hostlist_append (map->hosts[index], host) < 0 ? -1 : 0;
}

static int fill (struct map *map, struct hostlist *all,
                 const struct dws_topology *topo)
{
    const char *host;

    for (host = hostlist_first (all); host; host = hostlist_next (all)) {
        int index = dws_topology_find_host (topo, host);

        if (index >= 0 && add_host (map, index, host) < 0)
            return -1;
    }
    return 0;
}

static char *encode_map (const struct map *map, const struct dws_topology *topo)
{
    char *result = NULL;
    size_t size;
    FILE *stream;
    bool ok = true;

    if (!(stream = open_memstream (&result, &size)))
        return NULL;
    for (int i = 0; i < map->count && ok; i++) {
        int index = map->order[i];
        char *s = hostlist_encode (map->hosts[index]);

        ok = s && fprintf (stream, "%s%s=%s", i > 0 ? ";" : "",
                           dws_topology_name (topo, index), s) > 0;
        free (s);
    }
    if (fclose (stream) != 0 || !ok) {
        free (result);
        return NULL;
    }
    return result;
}

char *dws_nodemap (const char *hosts,
                   const struct dws_topology *topo,
                   dws_error_t *error)
{
    struct hostlist *all;
    size_t count = dws_topology_count (topo);
    struct map map = { 0 };
    char *result = NULL;

    if (!(all = hostlist_decode (hosts))) {
        dws_error (error, EINVAL, "malformed hostlist '%s'", hosts);
        return NULL;
    }
    if (!(map.hosts = calloc (count + 1, sizeof (map.hosts[0])))
        || !(map.order = calloc (count + 1, sizeof (map.order[0])))
        || fill (&map, all, topo) < 0
        || !(result = encode_map (&map, topo)))
        dws_error_nomem (error);
    for (int i = 0; i < map.count; i++)
        hostlist_destroy (map.hosts[map.order[i]]);
    free (map.hosts);
    free (map.order);
    hostlist_destroy (all);
    return result;
}

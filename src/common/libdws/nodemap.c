/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See nodemap.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <flux/hostlist.h>

#include "nodemap.h"

static int append (FILE *stream, const char *rabbit, struct hostlist *hl)
{
    char *s;

    if (!(s = hostlist_encode (hl)))
        return -1;
    fprintf (stream, "%s%s=%s", ftell (stream) > 0 ? ";" : "", rabbit, s);
    free (s);
    return 0;
}

/* The hosts of one rabbit among 'all', in their order there.
 */
static int append_rabbit (FILE *stream, struct hostlist *all,
                          const struct dws_topology *topo, int index)
{
    struct hostlist *found;
    const char *host;
    int rc = -1;

    if (!(found = hostlist_create ()))
        return -1;
    for (host = hostlist_first (all); host; host = hostlist_next (all)) {
        if (dws_topology_find_host (topo, host) == index
            && hostlist_append (found, host) < 0)
            goto done;
    }
    rc = append (stream, dws_topology_name (topo, index), found);
done:
    hostlist_destroy (found);
    return rc;
}

char *dws_nodemap (const char *hosts,
                   const struct dws_topology *topo,
                   dws_error_t *error)
{
    struct hostlist *all;
    size_t count = dws_topology_count (topo);
    char *seen = NULL;
    char *result = NULL;
    size_t size;
    FILE *stream = NULL;
    int rc = -1;

    if (!(all = hostlist_decode (hosts))) {
        dws_error (error, EINVAL, "malformed hostlist '%s'", hosts);
        return NULL;
    }
    if (!(seen = calloc (1, count + 1))
        || !(stream = open_memstream (&result, &size)))
        goto done;
    /* append_rabbit() moves the cursor of the list. */
    for (int i = 0; i < hostlist_count (all); i++) {
        int index = dws_topology_find_host (topo, hostlist_nth (all, i));

        if (index < 0 || seen[index])
            continue;
        seen[index] = 1;
        if (append_rabbit (stream, all, topo, index) < 0)
            goto done;
    }
    rc = 0;
done:
    if (stream && (ferror (stream) || fclose (stream) != 0))
        rc = -1;
    if (rc < 0) {
        free (result);
        result = NULL;
        dws_error_nomem (error);
    }
    free (seen);
    hostlist_destroy (all);
    return result;
}

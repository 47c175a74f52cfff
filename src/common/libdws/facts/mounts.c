/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See mounts.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/hosts.h"
#include "mounts.h"

/* Mounts on compute nodes are told from those on rabbits by their name.
 */
#define COMPUTES_SUFFIX "-computes"

static bool ends_with (const char *s, const char *suffix)
{
    size_t len = strlen (s);
    size_t n = strlen (suffix);

    return len >= n && !strcmp (s + len - n, suffix);
}

/* A mount's state is what it is to become; ready says that it has.
 */
static bool mounts_are (json_t *status, const char *state)
{
    json_t *mounts = json_object_get (status, "mounts");
    json_t *mount;
    size_t index;

    json_array_foreach (mounts, index, mount) {
        const char *s = json_string_value (json_object_get (mount, "state"));
        if (!s || strcmp (s, state) != 0
            || !json_is_true (json_object_get (mount, "ready")))
            return false;
    }
    return json_array_size (mounts) > 0;
}

/* The compute node that a ClientMount is for, NULL if it is for a rabbit.
 */
static const char *compute_of (json_t *object)
{
    const char *name = "";
    const char *node = NULL;

    json_unpack (object, "{s:{s:s}}", "metadata", "name", &name);
    json_unpack (object, "{s:{s:s}}", "spec", "node", &node);
    return ends_with (name, COMPUTES_SUFFIX) ? node : NULL;
}

static int append_lagging (struct hostlist *hl, json_t *clientmounts,
                           const char *state, dws_error_t *error)
{
    json_t *object;
    size_t index;

    json_array_foreach (clientmounts, index, object) {
        const char *node = compute_of (object);

        if (node
            && !mounts_are (json_object_get (object, "status"), state)
            && hosts_list_append (hl, node, error) < 0)
            return -1;
    }
    return 0;
}

char *dws_mounts_lagging (json_t *clientmounts,
                          const char *state,
                          dws_error_t *error)
{
    struct hostlist *hl = hosts_list_create (error);

    return hosts_list_finish (hl,
                              hl && append_lagging (hl, clientmounts, state,
                                                    error) == 0,
                              error);
}

/* How many ClientMounts there are for each node.
 */
static json_t *count_mounts (json_t *clientmounts, dws_error_t *error)
{
    json_t *counts = json_object ();
    json_t *object;
    size_t index;

    json_array_foreach (clientmounts, index, object) {
        const char *node = compute_of (object);
        json_t *count = node ? json_object_get (counts, node) : NULL;

        if (node
            && json_object_set_new (counts, node,
                                    json_integer (json_integer_value (count)
                                                  + 1)) < 0) {
            json_decref (counts);
            counts = NULL;
        }
    }
    if (!counts)
        dws_error_nomem (error);
    return counts;
}

/* Nodes that were left out get no mounts, nor do hosts that have no rabbit.
 */
static int append_missing (struct hostlist *hl, json_t *counts,
                           const char *hosts, size_t each,
                           const struct dws_topology *topo,
                           dws_error_t *error)
{
    struct hostlist *all;
    const char *host;
    int rc = 0;

    if (!(all = hostlist_decode (hosts)))
        return dws_error (error, EINVAL, "malformed hostlist '%s'", hosts);
    for (host = hostlist_first (all); host && rc == 0;
         host = hostlist_next (all)) {
        json_t *count = json_object_get (counts, host);

        if ((size_t)json_integer_value (count) < each
            && dws_topology_find_host (topo, host) >= 0)
            rc = hosts_list_append (hl, host, error);
    }
    hostlist_destroy (all);
    return rc;
}

char *dws_mounts_missing (json_t *clientmounts,
                          const struct dws_job *job,
                          const struct dws_workflow *wf,
                          const struct dws_topology *topo,
                          dws_error_t *error)
{
    struct hostlist *hl = NULL;
    json_t *counts = NULL;
    char *hosts;
    char *result = NULL;

    if (!job->hosts)
        return dws_mounts_lagging (clientmounts, "mounted", error);
    if (!(hosts = dws_hosts_subtract (job->hosts, wf->failed, error)))
        return NULL;
    if ((counts = count_mounts (clientmounts, error))
        && (hl = hosts_list_create (error)))
        result = hosts_list_finish (hl,
                                    append_lagging (hl, clientmounts,
                                                    "mounted", error) == 0
                                    && append_missing (hl, counts, hosts,
                                                       wf->mounts, topo,
                                                       error) == 0,
                                    error);
    json_decref (counts);
    free (hosts);
    return result;
}

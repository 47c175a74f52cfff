/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See mounts.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/hosts.h"
#include "libdws/util/jsonmake.h"
#include "libdws/util/lists.h"
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

/* The 'state' of a mount is the wanted one; 'ready' says that the mount has reached it.
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

/* The number of ClientMounts of each node.
 */
static json_t *count_mounts (json_t *clientmounts, dws_error_t *error)
{
    json_t *counts = json_object ();
    json_t *object;
    size_t index;

    json_array_foreach (clientmounts, index, object) {
        const char *node = compute_of (object);
        json_t *count = node ? json_object_get (counts, node) : NULL;

        if (node)
            dws_json_set (&counts, node,
                          json_integer (json_integer_value (count) + 1));
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

    if (!(all = dws_hostlist_decode (hosts)))
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

static bool is_asked (json_t *object)
{
    const char *desired = "";
    const char *deleted = NULL;

    (void)json_unpack (object, "{s:{s?s} s:{s?s}}",
                       "metadata", "deletionTimestamp", &deleted,
                       "spec", "desiredState", &desired);
    return deleted || !strcmp (desired, "unmounted");
}

/* Are the allocations counted out to nodes? All nodes mount the same Lustre.
 */
static bool is_counted_out (json_t *object)
{
    json_t *mounts = NULL;
    json_t *mount;
    size_t index;

    (void)json_unpack (object, "{s:{s:o}}", "spec", "mounts", &mounts);
    json_array_foreach (mounts, index, mount) {
        const char *type = json_string_value (json_object_get (mount, "type"));

        if (!type || strcmp (type, "lustre") != 0)
            return true;
    }
    return false;
}

/* Does NNF wait for the node even if it is Disabled? NNF skips a Disabled node only if
 * the node has answered once and has not reported a fault.
 */
static bool is_deaf (json_t *object)
{
    json_t *finalizers = NULL;
    json_t *mounts = NULL;
    json_t *fault = NULL;

    (void)json_unpack (object, "{s:{s?o} s?{s?o s?o}}",
                       "metadata", "finalizers", &finalizers,
                       "status", "mounts", &mounts, "error", &fault);
    return json_array_size (finalizers) == 0 || json_array_size (mounts) == 0
        || json_is_object (fault);
}

enum dws_unmount dws_mounts_unmount (json_t *clientmounts,
                                     const struct dws_workflow *wf)
{
    const char *hosts = wf->waived ? wf->waived : "";
    struct hostlist *waived = dws_hostlist_decode (hosts);
    bool left = false;
    bool busy = !waived;
    bool after = false;
    bool deaf = false;
    json_t *object;
    size_t index;

    json_array_foreach (clientmounts, index, object) {
        const char *node = compute_of (object);

        if (!node || mounts_are (json_object_get (object, "status"),
                                 "unmounted"))
            continue;
        if (waived && hostlist_find (waived, node) >= 0) {
            left = true;
            deaf = deaf || (is_asked (object) && is_deaf (object));
        }
        else if (is_asked (object))
            busy = true;
        else if (is_counted_out (object))
            after = true;
    }
    hostlist_destroy (waived);
    if (busy || !left)
        return DWS_UNMOUNT_BUSY;
    if (!after)
        return DWS_UNMOUNT_WAIVED;
    return deaf ? DWS_UNMOUNT_DEAF : DWS_UNMOUNT_FIRST;
}

/* The name of a ClientMount ends in "-INDEX-computes".
 */
static bool index_of (const char *name, char *buf, size_t size)
{
    size_t len = strlen (name) - strlen (COMPUTES_SUFFIX);
    size_t start = len;

    while (start > 0 && name[start - 1] >= '0' && name[start - 1] <= '9')
        start--;
    if (start == len || start == 0 || name[start - 1] != '-'
        || len - start >= size)
        return false;
    memcpy (buf, name + start, len - start);
    buf[len - start] = '\0';
    return true;
}

json_t *dws_mounts_places (json_t *clientmounts)
{
    json_t *places = json_object ();
    json_t *object;
    size_t index;

    json_array_foreach (clientmounts, index, object) {
        const char *name = "";
        const char *path = NULL;
        char directive[16];

        if (!compute_of (object))
            continue;
        (void)json_unpack (object, "{s:{s:s} s:{s:[{s:s}]}}",
                           "metadata", "name", &name,
                           "spec", "mounts", "mountPath", &path);
        if (path && index_of (name, directive, sizeof (directive)))
            dws_json_set (&places, directive, json_string (path));
    }
    return places;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See mounts.h.
 */

#include <stdbool.h>
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

char *dws_mounts_lagging (json_t *clientmounts,
                          const char *state,
                          dws_error_t *error)
{
    struct hostlist *hl;
    json_t *object;
    size_t index;

    if (!(hl = hosts_list_create (error)))
        return NULL;
    json_array_foreach (clientmounts, index, object) {
        json_t *status = json_object_get (object, "status");
        const char *name = "";
        const char *node = NULL;

        json_unpack (object, "{s:{s:s}}", "metadata", "name", &name);
        json_unpack (object, "{s:{s:s}}", "spec", "node", &node);
        if (node && ends_with (name, COMPUTES_SUFFIX)
            && !mounts_are (status, state)
            && hosts_list_append (hl, node, error) < 0)
            return hosts_list_finish (hl, false, error);
    }
    return hosts_list_finish (hl, true, error);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See fluxion.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "libdws/util/jsonmake.h"
#include "libdws/util/lists.h"
#include "libutil/errno_safe.h"
#include "fluxion.h"
#include "health.h"

/* No rabbit of ours has more ssds than this (dws_jgf_create()).
 */
#define SSDS_MAX 100000
#define PATH_SIZE 512

struct dws_fluxion {
    json_t *rabbits;    // {NAME: {"path": S, "ssds": N, "state": S}}
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
    int ssds;

    (void)json_unpack (properties, "{s?s s?s}", "rabbit", &name,
                       "ssdcount", &count);
    if (!name || !count)
        return 0;
    ssds = atoi (count);
    if (ssds < 0 || ssds > SSDS_MAX)
        ssds = ssds < 0 ? 0 : SSDS_MAX;
    return json_object_set_new (fx->rabbits, name,
                                json_pack ("{s:s s:i s:s}",
                                           "path", path,
                                           "ssds", ssds,
                                           "state", ""));
}

/* The state of a rabbit's ssds is kept as a text with a letter for each.
 */
static int keep_down (json_t *entry, int ssds, const bool *next)
{
    char text[SSDS_MAX + 1];

    for (int n = 0; n < ssds; n++)
        text[n] = next && next[n] ? 'd' : 'u';
    text[ssds] = '\0';
    return json_object_set_new (entry, "state", json_string (text));
}

/* Index the rabbits by path, with all ssds up.
 */
static json_t *index_paths (struct dws_fluxion *fx)
{
    json_t *paths = json_object ();
    const char *name;
    json_t *entry;

    json_object_foreach (fx->rabbits, name, entry) {
        const char *path = "";
        int ssds = 0;

        (void)json_unpack (entry, "{s:s s:i}", "path", &path, "ssds", &ssds);
        if (keep_down (entry, ssds, NULL) < 0
            || json_object_set (paths, path, entry) < 0) {
            json_decref (paths);
            return NULL;
        }
    }
    return paths;
}

/* Note that 'path' is down if it is an ssd of a rabbit; ignore other vertices.
 */
static int note_down (json_t *paths, const char *path)
{
    const char *slash = strrchr (path, '/');
    char *parent = strndup (path, slash ? slash - path : 0);
    json_t *entry = parent ? json_object_get (paths, parent) : NULL;
    const char *was = json_string_value (json_object_get (entry, "state"));
    char *state = NULL;
    int rc = parent ? 0 : -1;
    int n = -1;

    if (was && sscanf (slash, "/ssd%d", &n) == 1 && n >= 0
        && n < (int)strlen (was)) {
        rc = -1;
        if ((state = strdup (was))) {
            state[n] = 'd';
            rc = json_object_set_new (entry, "state", json_string (state));
        }
    }
    free (state);
    free (parent);
    return rc;
}

static int learn_down (struct dws_fluxion *fx, json_t *vertices)
{
    json_t *paths = index_paths (fx);
    json_t *vertex;
    size_t index;
    int rc = paths ? 0 : -1;

    json_array_foreach (vertices, index, vertex) {
        const char *type = "";
        const char *path = "";

        (void)json_unpack (vertex, "{s:{s:s s:{s:s}}}",
                           "metadata",
                             "type", &type,
                             "paths", "containment", &path);
        if (rc == 0 && !strcmp (type, "ssd"))
            rc = note_down (paths, path);
    }
    json_decref (paths);
    return rc;
}

struct dws_fluxion *dws_fluxion_create (json_t *R, bool down,
                                        dws_error_t *error)
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
    if (down && learn_down (fx, vertices) < 0)
        goto nomem;
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
    struct hostlist *hl = dws_hostlist_decode (bad);
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
        if (!json_object_get (b, key))
            dws_json_append (&array, json_string (key));
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

#define GIB (INT64_C (1) << 30)

/* How many of the rabbit's ssds can be used. An ssd is of whole GiB, so that
 * the ssds may be less than the rabbit in all.
 */
static int usable (json_t *state, int ssds, int64_t mapped)
{
    int up = 0;
    json_int_t capacity = 0;
    json_int_t outside = 0;
    int64_t each;

    if (json_unpack (state, "{s:b s:I s?I}", "up", &up,
                     "capacity", &capacity, "outside", &outside) < 0 || !up)
        return 0;
    capacity = capacity > outside ? capacity - outside : 0;
    if (mapped <= 0 || ssds <= 0 || capacity >= mapped)
        return ssds;
    each = mapped / ssds;
    if (each >= GIB)
        each = each / GIB * GIB;
    return each > 0 && capacity / each < ssds ? (int)(capacity / each) : ssds;
}

static const char *ssd_path (char *buf, size_t size, const char *path, int n)
{
    snprintf (buf, size, "%s/ssd%d", path, n);
    return buf;
}

void dws_fluxion_use (json_t *uses, json_t *ssds, enum dws_ssd_use use)
{
    const char *path;
    json_t *value;

    json_object_foreach (ssds, path, value)
        (void)json_object_set_new (uses, path, json_integer (use));
}

/* Rank ssds by how well they serve to be down, best first: those of jobs that leave,
 * then those without a job (among them those already down, and kept ones, first), then
 * those of other jobs.
 */
#define RANKS 6

static int rank_ssd (json_t *use, bool down)
{
    if (!use)
        return down ? 1 : 3;
    switch ((enum dws_ssd_use)json_integer_value (use)) {
        case DWS_SSD_LEAVING:
            return 0;
        case DWS_SSD_KEPT:
            return down ? 1 : 2;
        case DWS_SSD_BUSY:
            break;
    }
    return down ? 4 : 5;
}

/* Choose 'count' ssds to be down, in 'next'.
 */
static void choose_down (const char *path, int ssds, int count,
                         const bool *down, json_t *uses, bool *next)
{
    for (int rank = 0; rank < RANKS; rank++) {
        for (int n = ssds - 1; n >= 0 && count > 0; n--) {
            char buf[PATH_SIZE];
            json_t *use = json_object_get (uses, ssd_path (buf, sizeof (buf),
                                                           path, n));

            if (!next[n] && rank_ssd (use, down[n]) == rank) {
                next[n] = true;
                count--;
            }
        }
    }
}

static int list_changes (json_t *changes, const char *path, int ssds,
                         bool known, const bool *down, const bool *next,
                         bool value)
{
    for (int n = 0; n < ssds; n++) {
        char buf[PATH_SIZE];

        if (next[n] == value && (!known || down[n] != next[n])
            && json_array_append_new (changes,
                                      json_pack ("[ss]",
                                                 ssd_path (buf, sizeof (buf),
                                                           path, n),
                                                 value ? "down" : "up")) < 0)
            return -1;
    }
    return 0;
}

static int change_rabbit (json_t *changes, json_t *entry, json_t *state,
                          json_t *uses, int64_t mapped)
{
    bool down[SSDS_MAX] = { false };
    bool next[SSDS_MAX] = { false };
    const char *path;
    const char *was;
    int ssds;
    bool known;

    if (json_unpack (entry, "{s:s s:i s:s}", "path", &path, "ssds", &ssds,
                     "state", &was) < 0)
        return 0;
    known = (int)strlen (was) == ssds;
    for (int n = 0; known && n < ssds; n++)
        down[n] = was[n] == 'd';
    choose_down (path, ssds, ssds - usable (state, ssds, mapped), down, uses,
                 next);
    if (list_changes (changes, path, ssds, known, down, next, false) < 0
        || list_changes (changes, path, ssds, known, down, next, true) < 0)
        return -1;
    return keep_down (entry, ssds, next);
}

json_t *dws_fluxion_ssds (struct dws_fluxion *fx,
                          json_t *rabbits,
                          json_t *uses,
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
                              json_object_get (rabbits, name), uses,
                              dws_topology_capacity (topo, index)) < 0)
            goto nomem;
    }
    return changes;
nomem:
    json_decref (changes);
    dws_error_nomem (error);
    return NULL;
}

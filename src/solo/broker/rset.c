/* SPDX-License-Identifier: LGPL-3.0-only */
/* rset.c - make the resource set R (RFC 20) of an instance.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>
#include <flux/idset.h>

#include "broker.h"
#include "rset.h"

static json_t *finish (json_t *R_lite,
                       struct hostlist *hl,
                       json_t *properties,
                       flux_error_t *error)
{
    char *hosts = hostlist_encode (hl);
    json_t *R;

    R = json_pack ("{s:i s:{s:O s:f s:f s:[s]}}",
                   "version", 1,
                   "execution",
                     "R_lite", R_lite,
                     "starttime", 0.,
                     "expiration", 0.,
                     "nodelist", hosts);
    free (hosts);
    if (!R) {
        errprintf (error, "error encoding R");
        return NULL;
    }
    if (json_object_size (properties) > 0)
        json_object_set (json_object_get (R, "execution"),
                         "properties",
                         properties);
    return R;
}

/* {"core": "0-3", "gpu": "0"} of a number of each.
 */
static json_t *make_children (int cores, int gpus)
{
    char s[32];
    json_t *o = json_object ();

    if (cores > 0) {
        snprintf (s, sizeof (s), cores > 1 ? "0-%d" : "%d", cores - 1);
        json_object_set_new (o, "core", json_string (s));
    }
    if (gpus > 0) {
        snprintf (s, sizeof (s), gpus > 1 ? "0-%d" : "%d", gpus - 1);
        json_object_set_new (o, "gpu", json_string (s));
    }
    return o;
}

json_t *rset_make (int size,
                   const char *hosts,
                   int cores,
                   int gpus,
                   flux_error_t *error)
{
    struct hostlist *hl;
    json_t *R_lite;
    json_t *R = NULL;
    char ranks[32];

    if (!(hl = hostlist_decode (hosts))) {
        errprintf (error, "%s: not a valid hostlist", hosts);
        return NULL;
    }
    if (hostlist_count (hl) != size) {
        errno = EINVAL;
        errprintf (error,
                   "%d nodes, but %d host names",
                   size,
                   hostlist_count (hl));
        goto out;
    }
    snprintf (ranks, sizeof (ranks), size > 1 ? "0-%d" : "%d", size - 1);
    R_lite = json_pack ("[{s:s s:o}]",
                        "rank", ranks,
                        "children", make_children (cores, gpus));
    R = finish (R_lite, hl, NULL, error);
    json_decref (R_lite);
out:
    hostlist_destroy (hl);
    return R;
}

json_t *rset_from_file (const char *path, flux_error_t *error)
{
    json_error_t jerror;
    json_t *R;

    if (!(R = json_load_file (path, 0, &jerror))) {
        errno = EINVAL;
        errprintf (error, "%s: %s", path, jerror.text);
    }
    return R;
}

/* Add one entry of [[resource.config]] to the nodes' children, properties.
 */
static int config_entry (json_t *entry,
                         struct hostlist *hl,
                         json_t *children,
                         json_t *properties,
                         flux_error_t *error)
{
    const char *hosts;
    const char *cores = NULL;
    const char *gpus = NULL;
    json_t *props = NULL;
    json_error_t jerror;
    struct hostlist *mine;
    size_t i;
    json_t *prop;

    if (json_unpack_ex (entry,
                        &jerror,
                        0,
                        "{s:s s?s s?s s?o}",
                        "hosts", &hosts,
                        "cores", &cores,
                        "gpus", &gpus,
                        "properties", &props) < 0) {
        errno = EINVAL;
        return errprintf (error, "[[resource.config]]: %s", jerror.text);
    }
    json_array_foreach (props, i, prop) {
        if (!json_is_string (prop)) {
            errno = EINVAL;
            return errprintf (error,
                              "[[resource.config]]: properties must be strings");
        }
    }
    if (!(mine = hostlist_decode (hosts)))
        return errprintf (error, "[[resource.config]] hosts: %s", hosts);
    for (const char *s = hostlist_first (mine); s; s = hostlist_next (mine)) {
        int rank = hostlist_find (hl, s);
        char key[16];

        if (rank < 0) {
            rank = hostlist_count (hl);
            hostlist_append (hl, s);
            json_array_append_new (children, json_object ());
        }
        json_t *o = json_array_get (children, rank);
        if (cores)
            json_object_set_new (o, "core", json_string (cores));
        if (gpus)
            json_object_set_new (o, "gpu", json_string (gpus));
        snprintf (key, sizeof (key), "%d", rank);
        json_array_foreach (props, i, prop) {
            const char *name = json_string_value (prop);
            json_t *ranks = json_object_get (properties, name);
            if (!ranks) {
                ranks = json_object ();
                json_object_set_new (properties, name, ranks);
            }
            json_object_set_new (ranks, key, json_true ());
        }
    }
    hostlist_destroy (mine);
    return 0;
}

/* {"0": true, "1": true} to "0-1"
 */
static char *ranks_encode (json_t *ranks)
{
    struct idset *ids = idset_create (0, IDSET_FLAG_AUTOGROW);
    const char *key;
    json_t *value;
    char *s;

    json_object_foreach (ranks, key, value)
        idset_set (ids, strtoul (key, NULL, 10));
    s = idset_encode (ids, IDSET_FLAG_RANGE);
    idset_destroy (ids);
    return s;
}

json_t *rset_from_config (json_t *config, flux_error_t *error)
{
    struct hostlist *hl = hostlist_create ();
    json_t *children = json_array ();
    json_t *properties = json_object ();
    json_t *R_lite = json_array ();
    json_t *R = NULL;
    json_t *entry, *value;
    const char *key;
    void *tmp;
    size_t i;

    json_array_foreach (config, i, entry)
        if (config_entry (entry, hl, children, properties, error) < 0)
            goto out;
    /* Neighbours with the same children become one entry.
     */
    for (i = 0; i < json_array_size (children); i++) {
        size_t first = i;
        char ranks[48];

        entry = json_array_get (children, i);
        while (i + 1 < json_array_size (children)
               && json_equal (json_array_get (children, i + 1), entry))
            i++;
        if (i > first)
            snprintf (ranks, sizeof (ranks), "%zu-%zu", first, i);
        else
            snprintf (ranks, sizeof (ranks), "%zu", i);
        json_array_append_new (R_lite,
                               json_pack ("{s:s s:O}",
                                          "rank", ranks,
                                          "children", entry));
    }
    json_object_foreach_safe (properties, tmp, key, value) {
        char *s = ranks_encode (value);
        json_object_set_new (properties, key, json_string (s));
        free (s);
    }
    R = finish (R_lite, hl, properties, error);
out:
    hostlist_destroy (hl);
    json_decref (children);
    json_decref (properties);
    json_decref (R_lite);
    return R;
}

int rset_check (json_t *R, char **hosts, flux_error_t *error)
{
    int version;
    json_t *R_lite, *nodelist, *o;
    struct hostlist *hl = hostlist_create ();
    struct idset *ids = idset_create (0, IDSET_FLAG_AUTOGROW);
    size_t i;
    int size = -1;

    errno = EINVAL;
    if (json_unpack (R,
                     "{s:i s:{s:o s:o}}",
                     "version", &version,
                     "execution",
                       "R_lite", &R_lite,
                       "nodelist", &nodelist) < 0
        || version != 1) {
        errprintf (error, "R is not a version 1 resource set");
        goto out;
    }
    json_array_foreach (R_lite, i, o) {
        const char *s = json_string_value (json_object_get (o, "rank"));
        if (!s || idset_decode_add (ids, s, -1, NULL) < 0) {
            errprintf (error, "R: invalid rank");
            goto out;
        }
    }
    json_array_foreach (nodelist, i, o)
        if (!json_is_string (o)
            || hostlist_append (hl, json_string_value (o)) < 0) {
            errprintf (error, "R: invalid nodelist");
            goto out;
        }
    if (idset_count (ids) == 0
        || idset_last (ids) != idset_count (ids) - 1
        || hostlist_count (hl) != (int)idset_count (ids)) {
        errprintf (error, "R: ranks must be 0 to n-1, with n host names");
        goto out;
    }
    if ((*hosts = hostlist_encode (hl)))
        size = idset_count (ids);
out:
    hostlist_destroy (hl);
    idset_destroy (ids);
    return size;
}

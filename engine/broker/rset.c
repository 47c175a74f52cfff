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

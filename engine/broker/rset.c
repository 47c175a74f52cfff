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

/* "0-3" of 4, or NULL: json_pack() leaves that out. */
static const char *count_to_ids (char *buf, size_t size, int count)
{
    snprintf (buf, size, count > 1 ? "0-%d" : "%d", count - 1);
    return count > 0 ? buf : NULL;
}

json_t *rset_make (int size, const char *hosts, int cores, int gpus,
                   flux_error_t *error)
{
    struct hostlist *hl = hostlist_decode (hosts);
    int count = hostlist_count (hl);
    char ids[3][32];
    json_t *R;

    hostlist_destroy (hl);
    if (!hl || count != size) {
        errno = EINVAL;
        if (hl)
            errprintf (error, "%d nodes, but %d host names", size, count);
        else
            errprintf (error, "%s: not a valid hostlist", hosts);
        return NULL;
    }
    R = json_pack ("{s:i s:{s:[{s:s s:{s:s* s:s*}}] s:f s:f s:[s]}}",
                   "version", 1,
                   "execution",
                     "R_lite",
                       "rank", count_to_ids (ids[0], sizeof (ids[0]), size),
                       "children",
                         "core", count_to_ids (ids[1], sizeof (ids[1]), cores),
                         "gpu", count_to_ids (ids[2], sizeof (ids[2]), gpus),
                     "starttime", 0.,
                     "expiration", 0.,
                     "nodelist", hosts);
    if (!R)
        errprintf (error, "error encoding R");
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

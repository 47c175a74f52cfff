/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See drained.h.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>
#include <flux/idset.h>

#include "libutil/errno_safe.h"
#include "libdws/facts/workflow.h"
#include "libdws/graph/rset.h"
#include "libdws/util/bounds.h"
#include "libdws/util/lists.h"
#include "drained.h"
#include "health.h"

static int add_drained (struct idset *ids, json_t *drain, const char *reason,
                        dws_error_t *error)
{
    const char *ranks;
    json_t *entry;

    json_object_foreach (drain, ranks, entry) {
        const char *s = "";

        (void)json_unpack (entry, "{s:s}", "reason", &s);
        if (!strcmp (s, reason)
            && dws_idset_decode_add (ids, ranks, DWS_MAX_HOSTS) < 0)
            return dws_error (error, EPROTO,
                              "resource.status: '%s' is no idset", ranks);
    }
    return 0;
}

/* Move the ranks of 'hosts' from one set to the other.
 */
static int move_hosts (struct idset *from, struct idset *to, json_t *R,
                       const char *hosts, dws_error_t *error)
{
    struct hostlist *hl = dws_hostlist_decode (hosts);
    struct rset *rs = NULL;
    const char *host;
    int rc = -1;

    if (!hl)
        dws_error (error, EINVAL, "'%s' is no hostlist", hosts);
    else if ((rs = rset_create (R, NULL, error))) {
        rc = 0;
        for (host = hostlist_first (hl); host && rc == 0;
             host = hostlist_next (hl)) {
            const struct rset_host *h = rset_find (rs, host);

            if (h && idset_test (from, h->rank)
                && (idset_set (to, h->rank) < 0
                    || idset_clear (from, h->rank) < 0))
                rc = dws_error_nomem (error);
        }
    }
    ERRNO_SAFE (rset_destroy (rs));
    ERRNO_SAFE (hostlist_destroy (hl));
    return rc;
}

int dws_drained_for (json_t *status, const char *reason, const char *hosts,
                     char **in, char **out, dws_error_t *error)
{
    struct idset *these = idset_create (0, IDSET_FLAG_AUTOGROW);
    struct idset *others = idset_create (0, IDSET_FLAG_AUTOGROW);
    json_t *drain;
    json_t *R;
    int rc = -1;

    *in = *out = NULL;
    if (!these || !others)
        dws_error_nomem (error);
    else if (json_unpack (status, "{s:o s:o}", "R", &R, "drain", &drain) < 0)
        dws_error (error, EPROTO, "resource.status: malformed response");
    else if (add_drained (others, drain, reason, error) == 0
             && move_hosts (others, these, R, hosts, error) == 0) {
        *in = idset_encode (these, IDSET_FLAG_RANGE);
        *out = idset_encode (others, IDSET_FLAG_RANGE);
        rc = *in && *out ? 0 : dws_error_nomem (error);
    }
    if (rc < 0) {
        ERRNO_SAFE (free (*in));
        ERRNO_SAFE (free (*out));
        *in = *out = NULL;
    }
    ERRNO_SAFE (idset_destroy (these));
    ERRNO_SAFE (idset_destroy (others));
    return rc;
}

/* The job that a reason names, or 0.
 */
static uint64_t maybe_job (json_t *entry)
{
    size_t len = strlen (DWS_DRAIN_MAYBE);
    const char *reason = "";

    (void)json_unpack (entry, "{s:s}", "reason", &reason);
    if (strncmp (reason, DWS_DRAIN_MAYBE, len) != 0 || reason[len] != ' ')
        return 0;
    return dws_workflow_jobid (reason + len + 1);
}

json_t *dws_drained_maybe (json_t *status, dws_error_t *error)
{
    json_t *drain = NULL;
    json_t *entry;
    json_t *result;
    const char *ranks;

    if (json_unpack (status, "{s?o}", "drain", &drain) < 0) {
        dws_error (error, EPROTO, "resource.status: malformed response");
        return NULL;
    }
    if (!(result = json_object ()))
        goto nomem;
    json_object_foreach (drain, ranks, entry) {
        uint64_t jobid = maybe_job (entry);
        const char *before;
        char key[32];
        json_t *all;

        if (jobid == 0)
            continue;
        snprintf (key, sizeof (key), "%" PRIu64, jobid);
        before = json_string_value (json_object_get (result, key));
        all = before ? json_sprintf ("%s,%s", before, ranks)
                     : json_string (ranks);
        if (json_object_set_new (result, key, all) < 0)
            goto nomem;
    }
    return result;
nomem:
    json_decref (result);
    dws_error_nomem (error);
    return NULL;
}

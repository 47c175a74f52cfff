/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See waived.h. The set is computed anew from the workflows for each call, as jobs with
 * waived nodes are few.
 */

#include <string.h>
#include <flux/hostlist.h>

#include "libdws/util/lists.h"
#include "facts/jobs.h"
#include "health/waived.h"

static void set_all (json_t *nodes, const char *hosts, json_t *value)
{
    struct hostlist *hl = dws_hostlist_decode (hosts);
    const char *host;

    for (host = hl ? hostlist_first (hl) : NULL; host;
         host = hostlist_next (hl)) {
        if (!json_is_null (json_object_get (nodes, host)))
            (void)json_object_set (nodes, host, value);
    }
    hostlist_destroy (hl);
}

static bool is_unmounting (const struct dws_workflow *wf)
{
    return wf->waived && wf->desired >= DWS_STATE_POSTRUN;
}

static void add_waived (struct job *job, void *arg)
{
    const struct dws_workflow *wf = job->wf;
    json_t *nodes = arg;

    if (!wf || !is_unmounting (wf))
        return;
    if (wf->state != wf->desired || wf->lag_state != wf->state)
        set_all (nodes, wf->waived, json_null ());
    else if (wf->unmount > DWS_UNMOUNT_BUSY)
        set_all (nodes, wf->waived, json_true ());
}

/* Are file systems of the job mounted on nodes, or about to be?
 */
static bool is_mounted (const struct job *job)
{
    const struct dws_workflow *wf = job->wf;

    return wf && wf->mounts > 0 && wf->desired >= DWS_STATE_PRERUN
        && wf->desired != DWS_STATE_DATAOUT
        && !(wf->desired == wf->state && wf->ready
             && wf->state > DWS_STATE_PRERUN);
}

static void spare_used (struct job *job, void *arg)
{
    json_t *nodes = arg;
    struct hostlist *hl = NULL;
    struct hostlist *own = NULL;
    const char *host;
    json_t *value;
    void *next;

    /* R of a gone job is not read, so its nodes stay unknown */
    if (!is_mounted (job)
        || (job->facts->phase == DWS_PHASE_GONE && !job->facts->hosts))
        return;
    hl = dws_hostlist_decode (job->facts->hosts ? job->facts->hosts : "");
    own = dws_hostlist_decode (job->wf->waived ? job->wf->waived : "");
    json_object_foreach_safe (nodes, next, host, value) {
        if (own && hostlist_find (own, host) >= 0)
            continue;
        if (!job->facts->hosts)
            (void)json_object_set (nodes, host, json_null ());
        else if (hl && hostlist_find (hl, host) >= 0)
            json_object_del (nodes, host);
    }
    hostlist_destroy (own);
    hostlist_destroy (hl);
}

json_t *waived_nodes (struct dws_ctx *ctx)
{
    json_t *nodes = json_object ();

    if (nodes)
        jobs_each (ctx->jobs, add_waived, nodes);
    if (json_object_size (nodes) > 0)
        jobs_each (ctx->jobs, spare_used, nodes);
    return nodes;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The epilog timeout lets a job go, and its nodes and rabbits go to other jobs: nodes
 * with mounts and rabbits with allocations are withheld first. See rows_private.h.
 */

#include "rows_private.h"

/* DWS may be about to mount for a state that it has not taken up yet, unless the
 * workflow is being deleted.
 */
bool dws_nodes_secured (const struct dws_job *job,
                        const struct dws_workflow *wf)
{
    if (!wf)
        return job->absent;
    if (wf->state == DWS_STATE_TEARDOWN && wf->ready)
        return true;
    if (wf->state < DWS_STATE_PRERUN)
        return (wf->desired < DWS_STATE_PRERUN
                || wf->desired == DWS_STATE_TEARDOWN || wf->deleting)
            && !(job->busy & DWS_BUSY (DWS_ACT_DESIRE));
    return know_mounted (wf) && (wf->lagging_count == 0 || wf->drained);
}

bool dws_rabbits_secured (const struct dws_workflow *wf)
{
    if (!wf || (wf->state == DWS_STATE_TEARDOWN && wf->ready))
        return true;
    return wf->allocated && (!*wf->allocated || wf->barred);
}

/* Nodes with a mount are drained before the job is let go: here or, if that comes too
 * late, all nodes of the job by the plugin. Clean nodes are undrained as soon as the
 * scheduler cannot place the next job on a rabbit that still holds allocations.
 */
static void keep_mounted (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    if (dws_nodes_secured (v->job, wf)) {
        if (!wf->undrained && dws_rabbits_secured (wf))
            row_undrain (v);
    }
    else if (wf->state < DWS_STATE_PRERUN)
        wait_for (v, "the workflow to be torn down");
    else if (have_mounted (v))
        act (v, DWS_ACT_DRAIN);
}

static void keep_allocated (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    if (dws_rabbits_secured (wf))
        return;
    wait_for (v, "the scheduler to be told of rabbits that are still taken");
    if (!wf->allocated)
        act (v, DWS_ACT_ALLOCATIONS);
    else if (!wf->disabled)
        act (v, DWS_ACT_DISABLE);
}

/* Without our finalizer the workflow may vanish before it is known which nodes are clean.
 * Rabbits need no wait: a workflow that is gone has left no allocation on them.
 */
static bool nodes_known (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    return wf->undrained
        || (dws_nodes_secured (v->job, wf) && !dws_rabbits_secured (wf));
}

void row_abandon (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    keep_mounted (v);
    keep_allocated (v);
    if (!wf->deleting && wf->desired != DWS_STATE_TEARDOWN)
        row_tear_down (v);
    else if (nodes_known (v) && wf->deleting)
        row_let_go (v);
    else if (nodes_known (v))
        row_begin_teardown (v);
}

void row_end_abandoned (struct view *v)
{
    keep_mounted (v);
    if (v->wf->undrained)
        row_remove_workflow (v);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Adopts workflows that flux-coral2 has made for jobs that still live, before the
 * table of reconcile.c decides about them. Only our label is missing. The label is
 * added last, so that a restart repeats the steps before it.
 */

#include "row_helpers_private.h"

/* The workflow of a job without nodes can be made again, so other directives mean that
 * it may belong to another job. Once the job has nodes, file systems may be mounted:
 * the workflow is the job's own, even if presets have changed since.
 */
bool dws_adopt_fits (const struct dws_job *job, const struct dws_workflow *wf)
{
    if (job->phase == DWS_PHASE_GONE && !job->recalled)
        return true;
    if (wf->userid != (int64_t)job->userid)
        return false;
    if (job->phase == DWS_PHASE_GONE)
        return job->remembered;
    return job->phase > DWS_PHASE_PENDING
        || wf->directives_hash == job->directives_hash;
}

/* flux-coral2 writes Servers in Proposal, as we do, but Computes when Setup is
 * done.
 */
bool dws_adopt_needs_computes (const struct dws_job *job,
                               const struct dws_workflow *wf)
{
    return wf->stray && job->phase == DWS_PHASE_PROLOG && !job->exception
        && !wf->deleting && wf->computes
        && (wf->desired == DWS_STATE_SETUP || wf->desired == DWS_STATE_DATAIN);
}

void adopt (struct view *v)
{
    bool gone = v->job->phase == DWS_PHASE_GONE;

    wait_for (v, "the workflow to be taken over from flux-coral2");
    if (gone && !v->job->recalled)
        act (v, DWS_ACT_RECALL);
    else if (!dws_adopt_needs_computes (v->job, v->wf) || have_hosts (v))
        act (v, DWS_ACT_ADOPT);
}

void keep_label (struct view *v)
{
    if (v->wf && v->wf->unlabelled && !v->wf->doubted)
        act (v, DWS_ACT_ADOPT);
}

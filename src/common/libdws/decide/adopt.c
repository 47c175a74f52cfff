/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Workflows that flux-coral2 has made for jobs that still live: they become ours
 * before the table of reconcile.c says anything about them. A label is all that
 * they lack. It goes on last, so that after a restart the same is done again.
 */

#include "view_private.h"

/* That of a job whose nodes are still to be found can be made again, and is not
 * worth the risk that it is another's. Of any other job file systems may be mounted:
 * its presets may have been changed since, but it is its own.
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

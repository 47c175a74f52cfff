/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * A stage-out that has failed, and may be tried again while the data is still
 * there (policy stage_out_retry). See rows_private.h.
 *
 * The workflow records when the stage-out failed, and whether a user asks to retry it.
 * NNF starts a data movement anew when a failed one is deleted, and the workflow
 * leaves Error. PostRun has unmounted the job's nodes, so they are released, and the
 * job goes on like one with release_nodes.
 */

#include <stdio.h>
#include <time.h>

#include "rows_private.h"

/* Make the last action a warning: the stage-out can be retried until 'until'.
 */
static void add_until (struct view *v, double until)
{
    struct dws_action *a;

    if (v->out->count == 0)
        return;
    a = &v->out->list[v->out->count - 1];
    a->severity = 1;            // the job has not failed, or not yet
    a->until = until;
}

static void tell_failed (struct view *v, double until)
{
    time_t when = until;
    struct tm tm;
    char date[32];

    strftime (date, sizeof (date), "%Y-%m-%d %H:%M:%S UTC",
              gmtime_r (&when, &tm));
    fail (v, NULL, "workflow error in DataOut, which flux rabbit retry tries "
          "again until %s: %s", date, v->wf->message);
    add_until (v, until);
}

bool keep_failed (struct view *v)
{
    const struct dws_workflow *wf = v->wf;
    double limit = v->policy->stage_out_retry;

    if (limit <= 0. || wf->desired != DWS_STATE_DATAOUT || v->job->reported)
        return false;
    if (wf->t_failed <= 0.) {
        wait_for (v, "the failure of the stage-out to be noted");
        act (v, DWS_ACT_KEEP);
        return true;
    }
    if (wf->retry) {
        wait_for (v, "the stage-out to be tried again");
        act (v, DWS_ACT_RETRY);
        return true;
    }
    if (expired (v, wf->t_failed, limit))
        return false;
    if (!(v->job->released ? wf->recorded : v->job->raised))
        tell_failed (v, wf->failed_at + limit);
    else if (!v->job->released)
        act (v, DWS_ACT_EPILOG_REMOVE);
    wait_for (v, "somebody to have the stage-out tried again");
    return true;
}

bool make_good (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    if (wf->t_failed <= 0. || wf->recorded)
        return true;
    wait_for (v, "the loss that was none to be taken off the record");
    act (v, DWS_ACT_REPORT);
    return false;
}

double stage_out_begin (struct view *v)
{
    double limit = v->policy->stage_out_retry;

    return v->wf->t_failed > 0. && limit > 0. ? v->wf->t_failed + limit
                                              : v->job->t_epilog;
}

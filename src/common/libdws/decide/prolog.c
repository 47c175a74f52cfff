/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The limit for the whole prolog, policy.prolog_timeout. Data that is staged in and
 * gets on is not subject to it: how long that takes depends on how much it is.
 */

#include <stddef.h>

#include "rows_private.h"

bool advances (struct view *v, double every)
{
    const struct dws_workflow *wf = v->wf;

    if (wf->t_progress <= 0. || expired (v, wf->t_progress, every)) {
        wait_for (v, "the progress of the data movement");
        act (v, DWS_ACT_PROGRESS);
        return true;
    }
    if (wf->advancing)
        wait_for (v, "data that is on the move still");
    return wf->advancing;
}

/* Its nodes may start to run, or its data is there, or the reason for its end is
 * known.
 */
static bool is_through (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    if (under_way (v, DWS_ACT_PROLOG_REMOVE))
        return true;
    if (!wf || wf->state != wf->desired)
        return false;
    return wf->status == DWS_STATUS_ERROR
        || (wf->ready && (wf->state == DWS_STATE_DATAIN
                          || wf->state == DWS_STATE_PRERUN));
}

/* Mounting has the whole time once more when data was staged in until after its end.
 */
static double begins (struct view *v)
{
    const struct dws_workflow *wf = v->wf;
    double begin = v->job->t_prolog;

    if (begin > 0. && wf && wf->desired > DWS_STATE_DATAIN
        && wf->t_desired >= begin + v->policy->prolog_timeout)
        return wf->t_desired;
    return begin;
}

/* The movements are read first a little before the end, so that they can be compared
 * when it has come.
 */
static bool moves_in (struct view *v, double begin)
{
    const struct dws_workflow *wf = v->wf;
    double step = v->policy->prolog_timeout / 10.;

    return wf && wf->desired == DWS_STATE_DATAIN && wf->state == wf->desired
        && expired (v, begin, v->policy->prolog_timeout - step)
        && advances (v, step);
}

bool prolog_overdue (struct view *v)
{
    double limit = v->policy->prolog_timeout;
    double begin = begins (v);
    bool staging = v->wf && v->wf->desired == DWS_STATE_DATAIN;

    if (limit < 0. || is_through (v) || moves_in (v, begin)
        || !expired (v, begin, limit))
        return false;
    if (staging)
        fail_late (v, "staging data in took longer than %gs, and does not get on",
                   limit);
    else if (v->wf)
        fail_late (v, "file systems were not mounted within %gs", limit);
    else
        fail (v, DWS_EXCEPTION_TIMEOUT,
              "there was no workflow within %gs", limit);
    return true;
}

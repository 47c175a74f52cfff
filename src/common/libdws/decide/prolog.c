/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The limit for the whole prolog, policy.prolog_timeout. Data that is being staged in
 * and advances may exceed it: the time of a copy depends on its size.
 */

#include <stddef.h>

#include "rows_private.h"

/* The least time between two readings of a copy's progress (s): NNF updates it every 5 s
 * with nnf-sos' example profile (progressIntervalSeconds).
 */
#define STEP_MIN 10.

/* True if the data movements advanced between the last two readings, which are 'every' so
 * many seconds apart, and until there are two.
 */
static bool advances (struct view *v, double every)
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

/* If data was staged in beyond the limit, mounting gets the whole limit once more.
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

/* The first reading of the movements comes a little before the limit, so that a second
 * one at the limit can be compared with it.
 */
static bool moves_in (struct view *v, double begin)
{
    const struct dws_workflow *wf = v->wf;
    double step = v->policy->prolog_timeout / 10.;

    if (step < STEP_MIN)
        step = STEP_MIN;
    return wf && wf->desired == DWS_STATE_DATAIN && wf->state == wf->desired
        && expired (v, begin, v->policy->prolog_timeout - step)
        && advances (v, step);
}

/* Returns the unmet condition that the timeout message names, as a borrowed text.
 */
static const char *awaited (const struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    if (!wf)
        return v->job->awaits ? v->job->awaits : "one to be made";
    if (wf->deleting || wf->desired == DWS_STATE_TEARDOWN)
        return "a workflow that cannot be used to go";
    if (wf->state != wf->desired)
        return "DWS to begin with the workflow's next state";
    switch (wf->state) {
        case DWS_STATE_PROPOSAL:
            if (!wf->ready)
                return "the directives to be read";
            return v->job->awaits ? v->job->awaits : "rabbits to be given to it";
        case DWS_STATE_SETUP:
            return "them to be created";
        case DWS_STATE_DATAIN:
            return "data to be staged in";
        default:
            return "nodes to mount them";
    }
}

/* Fail with the message that DWS has for the state.
 */
static void fail_overdue (struct view *v, double limit)
{
    const struct dws_workflow *wf = v->wf;
    bool has_message = wf && wf->state == wf->desired && !wf->deleting && *wf->message;

    fail (v, DWS_EXCEPTION_TIMEOUT, "%s within %gs: the job waited for %s%s%s",
          wf ? "file systems were not mounted" : "there was no workflow", limit,
          awaited (v), has_message ? ": " : "", has_message ? wf->message : "");
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
    else
        fail_overdue (v, limit);
    return true;
}

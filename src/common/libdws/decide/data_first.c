/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Data first, nodes later: a job gets its storage and its data while it is in
 * depend, and waits in the queue for nodes next to them. A job that holds nodes never
 * waits longer than data_first_timeout for a job that waits for nodes: after that the
 * waiting job's storage is released, and it asks for nodes first, for good.
 */

#include "rows_private.h"

static void update (struct view *v, enum dws_first first)
{
    struct dws_action *a;

    wait_for (v, v->job->awaits ? v->job->awaits
                                : "the job's resources to be updated");
    if ((a = act (v, DWS_ACT_RESOURCE_UPDATE)))
        a->data_first = first;
}

/* Nodes first. DWS_FIRST_NO records that the job could have had its data first.
 */
void offer (struct view *v)
{
    bool said = v->job->data_first == DWS_FIRST_YES || v->wf->data_first;

    update (v, said ? DWS_FIRST_NO : DWS_FIRST_UNSAID);
}

/* Storage is chosen and written before there are nodes.
 */
void row_reserve (struct view *v)
{
    if (!may_offer (v))
        return;
    if (v->wf->servers_written)
        desire (v, DWS_STATE_SETUP);
    else if (v->job->waits)
        wait_for (v, "the job's other dependencies, or to be released");
    else if (v->job->no_room && !under_way (v, DWS_ACT_SERVERS))
        offer (v);
    else {
        wait_for (v, v->job->awaits ? v->job->awaits
                                    : "rabbits to be chosen");
        act (v, DWS_ACT_SERVERS);
    }
}

void row_offer_staged (struct view *v)
{
    if (may_offer (v))
        update (v, DWS_FIRST_YES);
}

/* For a job in the queue: its data is gone or must not be used, so it gets nodes first.
 */
void row_unstage (struct view *v)
{
    if (have_breakdowns (v))
        update (v, DWS_FIRST_NO);
}

void row_keep_staged (struct view *v)
{
    wait_for (v, v->job->contended
                     ? "nodes next to the job's data, which are idle: a job"
                       " before it may wait for its storage"
                     : "nodes next to the job's data");
    if (expired (v, v->wf->t_ready, v->policy->data_first_timeout)
        || (v->job->contended
            && expired (v, v->wf->t_ready, v->policy->data_first_yield)))
        row_unstage (v);
}

/* With data first, the nodes that mount are known only after the queue.
 */
bool have_computes (struct view *v)
{
    if (!v->wf->data_first || v->wf->computes_written
        || v->wf->desired != DWS_STATE_DATAIN)
        return true;
    if (have_hosts (v)) {
        wait_for (v, "the computes to be written");
        act (v, DWS_ACT_COMPUTES);
    }
    return false;
}

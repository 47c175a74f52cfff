/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Shortens a wait of NNF. In PreRun and PostRun its NnfAccess controller waits until the
 * devices of an allocation have come to the job's nodes, or have left them. The devices
 * need some tenths of a second, but the controller reads them again after two seconds, or
 * when the job's Computes object changes. Actions TOUCH change an annotation of Computes
 * while such a state lasts. A module that restarts begins with these moments anew.
 * See doc/dev/upstream/nnf-access-poll.rst.
 */

#include "libdws/util/hosts.h"
#include "rows_private.h"

/* Seconds after the workflow was first seen in the state. After TOUCH_END NNF waits for
 * something else than devices.
 */
static const double moments[] = { 0.2, 0.5, 1., 2., 4. };
#define TOUCH_END 6.

/* The controller reads all nodes of a job at each look: 1 ms of its CPU time for a job of
 * one node, 6 ms for 16, and so 23 ms for 64 and 0.2 s for 560.
 */
#define TOUCH_NODES_MAX 64

static bool waits_for_devices (const struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    return (wf->state == DWS_STATE_PRERUN || wf->state == DWS_STATE_POSTRUN)
        && wf->state == wf->desired && !wf->ready && !wf->deleting
        && wf->status != DWS_STATUS_TRANSIENT
        && wf->computes && wf->mounts > 0
        && v->now < wf->t_seen + TOUCH_END;
}

/* Call last: a finished touch leads to no new decision, so the caller must have
 * requested all other wakeups before.
 */
void keep_touching (struct view *v)
{
    const struct dws_workflow *wf = v->wf;
    double due = 0.;

    if (v->out->count > 0 || !waits_for_devices (v))
        return;
    for (size_t i = 0; i < sizeof (moments) / sizeof (moments[0]); i++) {
        if (!expired (v, wf->t_seen, moments[i]))
            break;
        due = wf->t_seen + moments[i];
    }
    if (due <= wf->t_touched)
        return;
    if (!v->job->hosts)
        act (v, DWS_ACT_HOSTS);
    else if (dws_hosts_count (v->job->hosts) <= TOUCH_NODES_MAX)
        act (v, DWS_ACT_TOUCH);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Nodes in Computes that a job goes on without (dw_failure_tolerance): how to unmount its
 * file systems all the same. See rows_private.h.
 */

#include "rows_private.h"

/* DWS waits for waived nodes, too. No event reports that the other nodes are unmounted,
 * so read the mounts now and then. When only waived nodes are left, drain them, whatever
 * has been done about them since: drained nodes become Disabled, and DWS does not wait
 * for Disabled nodes (libdws/health/health.h).
 */
#define WAIVED_FIRST 2.
#define WAIVED_AGAIN 5.

static bool is_due (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    return wf->waived && wf->state == wf->desired && !wf->deleting
        && expired (v, wf->t_desired, WAIVED_FIRST);
}

static bool have_mounts (struct view *v)
{
    const struct dws_workflow *wf = v->wf;
    bool read = wf->lag_state == wf->state;

    if ((!read || (wf->unmount != DWS_UNMOUNT_WAIVED
                   && expired (v, wf->t_lag, WAIVED_AGAIN)))
        && !asks_for (v, DWS_ACT_MOUNTS))
        act (v, DWS_ACT_MOUNTS);
    return read;
}

/* Are only waived nodes left to unmount, and are they drained?
 */
static bool are_left (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    if (wf->unmount > DWS_UNMOUNT_BUSY && !wf->kept)
        act (v, DWS_ACT_KEEP_NODES);
    return wf->unmount > DWS_UNMOUNT_BUSY && wf->kept;
}

/* Leave waived nodes out of Computes where that is safe. Otherwise NNF unmounts other
 * nodes only after them. DWS never stops waiting for a node that has not even begun to
 * mount: only Teardown gets around it. If there is data to be moved, the node may come
 * back within the time limits.
 */
enum waived pass_waived (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    if (!is_due (v))
        return WAIVED_NONE;
    if (!have_mounts (v))
        return WAIVED_HANDLED;
    if (!are_left (v))
        return WAIVED_NONE;
    if (wf->unmount == DWS_UNMOUNT_WAIVED && !wf->excluded && have_hosts (v))
        act (v, DWS_ACT_EXCLUDE);
    if (wf->unmount != DWS_UNMOUNT_DEAF || wf->moves)
        return WAIVED_NONE;
    return WAIVED_TEAR_DOWN;
}

void keep_waived (struct view *v)
{
    if (is_due (v) && have_mounts (v))
        (void)are_left (v);
}

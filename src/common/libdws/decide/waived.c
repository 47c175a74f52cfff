/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The nodes that a job does without and that are in Computes (dw_failure_tolerance):
 * how its file systems are unmounted all the same. See rows_private.h.
 */

#include "rows_private.h"

/* DWS waits for the nodes that a job does without, too. Nothing tells when the others
 * are through, so that is looked at now and then. Those of them that are left are
 * drained, whatever has been done about them since, as from then on nobody waits for
 * them: those that are drained are Disabled (libdws/health/health.h).
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

/* True if they are, and drained.
 */
static bool are_left (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    if (wf->unmount > DWS_UNMOUNT_BUSY && !wf->kept)
        act (v, DWS_ACT_KEEP_NODES);
    return wf->unmount > DWS_UNMOUNT_BUSY && wf->kept;
}

/* Where that is safe they are left out of Computes. Otherwise other nodes' turn comes
 * after theirs. DWS never stops waiting for one that has not even begun to mount:
 * Teardown gets around it. If there is data to be moved, the node may come back within
 * the time limits.
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

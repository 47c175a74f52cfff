/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The invariants of the model: at each action of dws_reconcile(), and in each state.
 */

#include "model_private.h"

void model_fail (struct model_check *check, const char *why)
{
    if (!check->failure)
        check->failure = why;
}

bool model_arrived (const struct model_workflow *wf)
{
    return wf->exists && wf->desired == wf->state
        && wf->state != DWS_STATE_NONE;
}

bool model_reached (const struct model_workflow *wf, int state)
{
    return model_arrived (wf) && wf->state == state && wf->ready;
}

bool model_mounted (const struct model_workflow *wf)
{
    return wf->exists && !wf->other && wf->state >= DWS_STATE_PRERUN
        && !model_reached (wf, DWS_STATE_POSTRUN)
        && wf->state != DWS_STATE_DATAOUT
        && !model_reached (wf, DWS_STATE_TEARDOWN);
}

bool model_has_timeout (int state)
{
    return state == DWS_STATE_SETUP || state == DWS_STATE_PRERUN
        || state == DWS_STATE_POSTRUN || state == DWS_STATE_DATAOUT;
}

/* The job is gone, its data is not safe yet.
 */
static bool moves_on (const struct model *m)
{
    bool begun = m->seen.desired == DWS_STATE_DATAOUT
        || model_reached (&m->seen, DWS_STATE_POSTRUN)
        || (m->alone && m->seen.desired >= DWS_STATE_PRERUN
            && m->seen.desired < DWS_STATE_TEARDOWN);

    return m->phase == DWS_PHASE_GONE && (m->let_go || m->alone) && begun
        && !model_reached (&m->seen, DWS_STATE_DATAOUT);
}

/* The same, without what never was mounted: a workflow that was made again on
 * its way to PreRun.
 */
static bool at_risk (const struct model *m)
{
    return moves_on (m)
        && (m->seen.desired != DWS_STATE_PRERUN
            || model_reached (&m->seen, DWS_STATE_PRERUN));
}

static void check_teardown (const struct model *m, double now,
                            struct model_check *check)
{
    const struct model_workflow *wf = &m->seen;

    if (wf->desired == DWS_STATE_TEARDOWN)
        model_fail (check, "Teardown is asked for twice");
    if (m->keeps && m->ran && !m->abandoned && !m->teardown && now == EARLY
        && !m->reported
        && wf->desired == DWS_STATE_DATAOUT && !model_reached (wf, wf->desired))
        model_fail (check, "data is lost that can be moved yet");
    if (m->keeps && wf->failed && model_reached (wf, DWS_STATE_DATAOUT) && m->released
        && m->listed)
        model_fail (check, "a loss is on record that is none");
    if (m->phase == DWS_PHASE_RUNNING)
        model_fail (check, "Teardown under a running job");
    if (m->phase == DWS_PHASE_EPILOG && m->ran && !m->teardown
        && !m->abandoned && wf->desired >= DWS_STATE_PRERUN
        && !model_reached (wf, DWS_STATE_DATAOUT)
        && !(wf->desired == DWS_STATE_PRERUN && !model_reached (wf, wf->desired))
        && wf->status != DWS_STATUS_ERROR
        && now == EARLY)
        model_fail (check, "data is lost");
    if (at_risk (m) && !m->reported)
        model_fail (check, "data is lost silently");
}

/* Does this workflow have the job's data before the job has nodes?
 */
static bool is_early (const struct model *m)
{
    return m->seen.data_first && m->data_first != DWS_FIRST_NO;
}

static void check_update (const struct model *m, const struct dws_action *a,
                          double now, struct model_check *check)
{
    const struct model_workflow *wf = &m->seen;

    if (wf->other)
        model_fail (check, "another job's workflow is used");
    if (!wf->breakdowns)
        model_fail (check, "resource-update without breakdowns");
    if (a->data_first == DWS_FIRST_YES
        && (m->phase != DWS_PHASE_DEPEND || !is_early (m)
            || !model_reached (wf, DWS_STATE_DATAIN)))
        model_fail (check, "nodes are asked for before the data is there");
    if (a->data_first == DWS_FIRST_YES)
        return;
    if (m->phase == DWS_PHASE_DEPEND && !model_reached (wf, DWS_STATE_PROPOSAL))
        model_fail (check, "resource-update before Proposal");
    if (m->phase == DWS_PHASE_DEPEND && is_early (m) && !m->no_room)
        model_fail (check, "a job is to have its data first and does not");
    if (m->phase > DWS_PHASE_DEPEND
        && (m->phase != DWS_PHASE_PENDING || m->data_first != DWS_FIRST_YES
            || a->data_first != DWS_FIRST_NO))
        model_fail (check, "resource-update in the queue");
    if (m->phase == DWS_PHASE_PENDING && is_early (m)
        && model_reached (wf, DWS_STATE_DATAIN)
        && now < (m->contended ? SOON : SOON + 5.))
        model_fail (check, "data that is there is given back too early");
}

/* Does it exist?
 */
static bool in_doubt (const struct model *m)
{
    return m->seen.exists ? m->seen.doubted : !m->absent;
}

void model_check_action (const struct model *m,
                         const struct dws_action *a,
                         double now,
                         struct model_check *check)
{
    const struct model_workflow *wf = &m->seen;

    if (a->kind != DWS_ACT_SAVE && is_busy (m, a->kind))
        model_fail (check, "repeated while under way");
    if (m->phase == DWS_PHASE_GONE && m->late && !m->abandoned
        && a->kind != DWS_ACT_RECALL && a->kind != DWS_ACT_LOOK
        && !model_reached (wf, DWS_STATE_TEARDOWN))
        model_fail (check, "it is forgotten that the job was abandoned");
    if (in_doubt (m) && a->kind != DWS_ACT_LOOK)
        model_fail (check, "something is done while the workflow may be gone or not");
    switch (a->kind) {
        case DWS_ACT_LOOK:
            if (!in_doubt (m))
                model_fail (check, "the workflow is read without need");
            break;
        case DWS_ACT_ADOPT:
            if (!wf->hidden)
                model_fail (check, "a label is given without need");
            break;
        case DWS_ACT_CREATE:
            if (wf->exists)
                model_fail (check, "create although it exists");
            if (m->phase > DWS_PHASE_PROLOG || m->exception)
                model_fail (check, "create for a job that ends");
            break;
        case DWS_ACT_RESOURCE_UPDATE:
            check_update (m, a, now, check);
            break;
        case DWS_ACT_COMPUTES:
            if (!m->hosts || m->phase != DWS_PHASE_PROLOG)
                model_fail (check, "Computes without nodes");
            break;
        case DWS_ACT_RAISE:
            if (m->phase == DWS_PHASE_PROLOG && model_arrived (wf)
                && wf->state == DWS_STATE_DATAIN
                && wf->status == DWS_STATUS_DRIVERWAIT
                && m->progress == PROGRESS_MADE)
                model_fail (check, "a job ends while its data moves in");
            break;
        case DWS_ACT_REPORT:
            if (!*a->text) {
                if (!model_reached (wf, DWS_STATE_DATAOUT) || !wf->failed)
                    model_fail (check, "a loss is taken back");
                break;
            }
            if (!moves_on (m) || m->reported)
                model_fail (check, "a loss is reported without need");
            if (m->keeps && now == EARLY && !wf->deleting && a->until == 0.)
                model_fail (check, "data is given up that can be moved yet");
            if (!wf->deleting && wf->status != DWS_STATUS_ERROR
                && now == EARLY)
                model_fail (check, "data is lost without need");
            break;
        case DWS_ACT_DESIRE:
            if ((int)a->state != wf->desired + 1
                || !model_reached (wf, wf->desired))
                model_fail (check, "a state is skipped, taken back or too early");
            if (a->state == DWS_STATE_SETUP
                && (!wf->servers || (!wf->computes && !is_early (m))))
                model_fail (check, "Setup without Servers and Computes");
            if (wf->desired == DWS_STATE_TEARDOWN
                || is_busy (m, DWS_ACT_TEARDOWN))
                model_fail (check, "Teardown is undone");
            if (a->state == DWS_STATE_PRERUN && !wf->computes && wf->data_first)
                model_fail (check, "PreRun without Computes");
            if (m->phase != DWS_PHASE_PROLOG
                && !(m->phase == DWS_PHASE_DEPEND && is_early (m)
                     && a->state <= DWS_STATE_DATAIN)
                && !(m->phase == DWS_PHASE_EPILOG && m->ran)
                && !moves_on (m))
                model_fail (check, "a state that the job does not need");
            if (m->alone && wf->desired == DWS_STATE_PRERUN
                && !m->kept && (m->lag != 1 || m->missing))
                model_fail (check, "others may get nodes that are mounted");
            if (m->alone && m->kept && !m->undrained
                && wf->desired > DWS_STATE_PRERUN)
                model_fail (check, "nodes stay drained");
            break;
        case DWS_ACT_TEARDOWN:
            check_teardown (m, now, check);
            break;
        case DWS_ACT_PROLOG_REMOVE:
            if (!model_reached (wf, DWS_STATE_PRERUN) || wf->deleting
                || is_busy (m, DWS_ACT_TEARDOWN))
                model_fail (check, "prolog released before PreRun is ready");
            if (m->left_out && !m->noted)
                model_fail (check, "the job is not told of nodes left out");
            break;
        case DWS_ACT_EPILOG_REMOVE:
            if (m->keeps && wf->failed && m->raised
                && wf->desired == DWS_STATE_DATAOUT)
                break;
            if (m->unmount && m->ran
                && (model_reached (wf, DWS_STATE_POSTRUN)
                    || wf->desired == DWS_STATE_DATAOUT))
                break;
            if (!wf->exists && model_mounted (&m->real))
                model_fail (check, "nodes are given back while they are mounted");
            if (wf->exists && !model_reached (wf, DWS_STATE_TEARDOWN))
                model_fail (check, "epilog released before Teardown");
            if (wf->exists && !m->saved)
                model_fail (check, "epilog released before the record is saved");
            break;
        case DWS_ACT_FINALIZER:
            if (wf->state != DWS_STATE_TEARDOWN && !wf->deleting)
                model_fail (check, "finalizer dropped before Teardown");
            if (at_risk (m) && !m->reported)
                model_fail (check, "data is lost silently");
            break;
        case DWS_ACT_DELETE:
            if (!model_reached (wf, DWS_STATE_TEARDOWN))
                model_fail (check, "deleted before Teardown");
            break;
        case DWS_ACT_FORCE_READY:
            if (m->lag - 1 > m->tolerance || wf->ready
                || (wf->state == DWS_STATE_SETUP && !m->excluded)
                || m->phase != DWS_PHASE_PROLOG)
                model_fail (check, "forced ready without need");
            if (!m->noted)
                model_fail (check, "the job is not told of nodes left out");
            break;
        case DWS_ACT_NOTIFY:
            if (m->lag < 2 || m->phase != DWS_PHASE_PROLOG)
                model_fail (check, "a job is told of nothing");
            break;
        case DWS_ACT_DRAIN:
            if (m->lag < 2 || m->drained)
                model_fail (check, "drain of nothing");
            if (wf->state == DWS_STATE_PROPOSAL)
                model_fail (check, "drain for a rabbit that is down");
            break;
        case DWS_ACT_KEEP_NODES:
            if (m->lag < 2 || m->kept || (!m->alone && !m->only_waived))
                model_fail (check, "drain of nodes that may be used");
            break;
        case DWS_ACT_UNDRAIN:
            if (m->abandoned) {
                if (m->undrained || model_exposed (m))
                    model_fail (check, "nodes are given that may be mounted");
                if (model_unbarred (m))
                    model_fail (check, "nodes are given next to rabbits that"
                                " are taken");
                break;
            }
            if (!m->alone || m->undrained
                || !(model_reached (wf, DWS_STATE_POSTRUN)
                     || wf->desired == DWS_STATE_DATAOUT
                     || model_reached (wf, DWS_STATE_TEARDOWN)))
                model_fail (check, "nodes are given that may be mounted");
            break;
        case DWS_ACT_REPAIR:
            if (!m->hosts || (m->looked && now < LATER)
                || (wf->ready && !wf->deleting))
                model_fail (check, "Computes is looked for without need");
            break;
        case DWS_ACT_TOUCH:
            if (m->touched || now != SOON || !m->hosts || wf->ready || wf->deleting
                || !model_arrived (wf)
                || (wf->state != DWS_STATE_PRERUN
                    && wf->state != DWS_STATE_POSTRUN))
                model_fail (check, "Computes is touched without need");
            break;
        case DWS_ACT_EXCLUDE:
            if (wf->state >= DWS_STATE_PRERUN && (!m->only_waived || !m->kept))
                model_fail (check, "Computes changes under mounts");
            if (!m->hosts)
                model_fail (check, "the job's nodes are not known");
            break;
        case DWS_ACT_MOUNTS:
            if (m->phase == DWS_PHASE_PROLOG && !m->hosts
                && wf->desired == DWS_STATE_PRERUN)
                model_fail (check, "the job's nodes are not known");
            break;
        case DWS_ACT_DISABLE:
            if (!m->abandoned || m->disabled)
                model_fail (check, "rabbits disabled without need");
            break;
        default:
            break;
    }
}

/* A job in the queue neither keeps storage for ever nor waits for nodes next to storage
 * that is not there.
 */
static void check_queue (const struct model *m, double now,
                         struct model_check *check)
{
    const struct model_workflow *wf = &m->seen;

    if (m->phase != DWS_PHASE_PENDING || m->exception || wf->deleting || m->spoilt
        || wf->status == DWS_STATUS_ERROR || m->data_first != DWS_FIRST_YES
        || is_busy (m, DWS_ACT_RESOURCE_UPDATE)
        || is_busy (m, DWS_ACT_BREAKDOWNS))
        return;
    if (wf->data_first && model_reached (wf, DWS_STATE_DATAIN)
        && now >= (m->contended ? SOON : LATE))
        model_fail (check, "data waits for nodes for ever");
    if (model_reached (wf, DWS_STATE_PROPOSAL))
        model_fail (check, "a job waits for nodes next to what is not there");
}

/* In PreRun and PostRun NNF is made to look at the devices.
 */
static void check_touched (const struct model *m, double now,
                           struct model_check *check)
{
    const struct model_workflow *wf = &m->seen;
    bool mounts = m->phase == DWS_PHASE_PROLOG && !m->exception && !m->spoilt
                  && wf->state == DWS_STATE_PRERUN;
    bool unmounts = m->phase == DWS_PHASE_EPILOG && m->ran && !m->teardown
                    && !m->abandoned && wf->state == DWS_STATE_POSTRUN;

    if ((mounts || unmounts) && now == SOON && m->hosts && !m->touched
        && model_arrived (wf) && !wf->ready && !wf->deleting
        && (wf->status == DWS_STATUS_NONE || wf->status == DWS_STATUS_DRIVERWAIT)
        && !is_busy (m, DWS_ACT_ADOPT))
        model_fail (check, "NNF waits for its own time");
}

/* What must be on its way in this state, whichever row does it.
 */
void model_check_duties (const struct model *m, double now,
                         struct model_check *check)
{
    const struct model_workflow *wf = &m->seen;
    bool live = m->phase != DWS_PHASE_GONE && !m->abandoned;
    bool again = wf->outdated && !m->remade && wf->state == DWS_STATE_SETUP
                 && m->phase <= DWS_PHASE_PROLOG;

    if (in_doubt (m)) {
        if (!is_busy (m, DWS_ACT_LOOK))
            model_fail (check, "nobody reads a workflow that may be gone");
        return;
    }
    if (wf->exists && wf->hidden && !is_busy (m, DWS_ACT_ADOPT))
        model_fail (check, "a workflow stays out of sight");
    check_queue (m, now, check);
    check_touched (m, now, check);
    if (again && model_arrived (wf) && wf->status == DWS_STATUS_ERROR
        && !wf->deleting && !m->exception
        && !(wf->other && m->phase == DWS_PHASE_DEPEND)
        && !is_busy (m, DWS_ACT_TEARDOWN))
        model_fail (check, "an error of NNF's own is not tried again");
    if (live && !again && model_arrived (wf) && wf->status == DWS_STATUS_ERROR
        && (wf->state != DWS_STATE_TEARDOWN || m->phase == DWS_PHASE_EPILOG)
        && !wf->deleting && !(wf->other && m->phase == DWS_PHASE_DEPEND)
        && !m->exception && !m->raised && !m->teardown
        && !(m->spoilt && m->phase <= DWS_PHASE_PROLOG)
        && !(m->keeps && !wf->failed) && !wf->retry
        && (m->phase != DWS_PHASE_EPILOG || m->ran)
        && !(m->unmount && m->phase == DWS_PHASE_EPILOG
             && wf->state == DWS_STATE_DATAOUT)
        && !is_busy (m, DWS_ACT_RAISE) && !is_busy (m, DWS_ACT_REJECT))
        model_fail (check, "an error is not reported");
    if (m->phase == DWS_PHASE_RUNNING && now >= LATE && model_arrived (wf)
        && !wf->ready && wf->status == DWS_STATUS_TRANSIENT && !wf->deleting
        && wf->desired < DWS_STATE_TEARDOWN
        && !m->exception && !m->raised && !is_busy (m, DWS_ACT_RAISE))
        model_fail (check, "a job runs on without its storage");
    if (moves_on (m) && m->released && !m->abandoned
        && model_arrived (wf) && wf->status == DWS_STATUS_ERROR
        && !m->reported && !is_busy (m, DWS_ACT_REPORT)
        && !(m->keeps && (!wf->failed || wf->retry || m->recorded))
        && !is_busy (m, DWS_ACT_UNDRAIN))
        model_fail (check, "a loss is not reported");
    if (model_arrived (wf) && wf->state == DWS_STATE_DATAOUT && wf->retry
        && !wf->ready && !wf->deleting && m->released && !m->abandoned
        && !m->reported && !is_busy (m, DWS_ACT_RETRY))
        model_fail (check, "another try is forgotten");
    if (model_arrived (wf) && wf->state == DWS_STATE_TEARDOWN && wf->finalizer
        && m->phase != DWS_PHASE_RUNNING
        && (m->phase >= DWS_PHASE_EPILOG || !m->exception)
        && (m->phase != DWS_PHASE_GONE || m->recalled || m->abandoned
            || m->released)
        && !((m->stranded || m->abandoned) && !m->undrained)
        && !is_busy (m, DWS_ACT_FINALIZER))
        model_fail (check, "the finalizer stays on in Teardown");
}

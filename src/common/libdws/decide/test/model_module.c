/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The module's part of the model: it carries out the actions of the real
 * dws_reconcile() and checks the invariants at each one.
 */

#include "libdws/directive/command.h"
#include "model_private.h"

static const struct dws_policy limits = {
    .tc_timeout = 10.,
    .prolog_timeout = -1.,
    .setup_timeout = 10.,
    .prerun_timeout = 10.,
    .postrun_timeout = 10.,
    .teardown_after = 10.,
    .datamovement_grace = -1.,
    .orphan_grace = 10.,
    .data_first_timeout = 10.,
    .data_first_yield = 3.,
};

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

static bool reached (const struct model_workflow *wf, int state)
{
    return model_arrived (wf) && wf->state == state && wf->ready;
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
        || reached (&m->seen, DWS_STATE_POSTRUN)
        || (m->alone && m->seen.desired >= DWS_STATE_PRERUN
            && m->seen.desired < DWS_STATE_TEARDOWN);

    return m->phase == DWS_PHASE_GONE && (m->let_go || m->alone) && begun
        && !reached (&m->seen, DWS_STATE_DATAOUT);
}

/* The same, without what never was mounted: a workflow that was made again on
 * its way to PreRun.
 */
static bool at_risk (const struct model *m)
{
    return moves_on (m)
        && (m->seen.desired != DWS_STATE_PRERUN
            || reached (&m->seen, DWS_STATE_PRERUN));
}

static void check_teardown (const struct model *m, double now,
                            struct model_check *check)
{
    const struct model_workflow *wf = &m->seen;

    if (wf->desired == DWS_STATE_TEARDOWN)
        model_fail (check, "Teardown is asked for twice");
    if (m->keeps && m->ran && !m->abandoned && !m->teardown && now == EARLY
        && !m->reported
        && wf->desired == DWS_STATE_DATAOUT && !reached (wf, wf->desired))
        model_fail (check, "data is lost that can be moved yet");
    if (m->keeps && wf->failed && reached (wf, DWS_STATE_DATAOUT) && m->released
        && m->listed)
        model_fail (check, "a loss is on record that is none");
    if (m->phase == DWS_PHASE_RUNNING)
        model_fail (check, "Teardown under a running job");
    if (m->phase == DWS_PHASE_EPILOG && m->ran && !m->teardown
        && !m->abandoned && wf->desired >= DWS_STATE_PRERUN
        && !reached (wf, DWS_STATE_DATAOUT)
        && !(wf->desired == DWS_STATE_PRERUN && !reached (wf, wf->desired))
        && wf->status != DWS_STATUS_ERROR
        && now == EARLY)
        model_fail (check, "data is lost");
    if (m->phase == DWS_PHASE_EPILOG && m->ran && !m->teardown
        && !m->abandoned && m->progress == PROGRESS_MADE && now < OVER && !wf->ready
        && wf->status != DWS_STATUS_ERROR
        && wf->status != DWS_STATUS_TRANSIENT)
        model_fail (check, "data is lost on its way");
    if (at_risk (m) && !m->reported)
        model_fail (check, "data is lost silently");
}

/* Does this workflow have the job's data before the job has nodes?
 */
static bool is_early (const struct model *m)
{
    return m->seen.first && m->first != DWS_FIRST_NO;
}

static void check_update (const struct model *m, const struct dws_action *a,
                          double now, struct model_check *check)
{
    const struct model_workflow *wf = &m->seen;

    if (wf->other)
        model_fail (check, "another job's workflow is used");
    if (!wf->breakdowns)
        model_fail (check, "resource-update without breakdowns");
    if (a->first == DWS_FIRST_YES
        && (m->phase != DWS_PHASE_DEPEND || !is_early (m)
            || !reached (wf, DWS_STATE_DATAIN)))
        model_fail (check, "nodes are asked for before the data is there");
    if (a->first == DWS_FIRST_YES)
        return;
    if (m->phase == DWS_PHASE_DEPEND && !reached (wf, DWS_STATE_PROPOSAL))
        model_fail (check, "resource-update before Proposal");
    if (m->phase == DWS_PHASE_DEPEND && is_early (m) && !m->crowded)
        model_fail (check, "a job is to have its data first and does not");
    if (m->phase > DWS_PHASE_DEPEND
        && (m->phase != DWS_PHASE_PENDING || m->first != DWS_FIRST_YES
            || a->first != DWS_FIRST_NO))
        model_fail (check, "resource-update in the queue");
    if (m->phase == DWS_PHASE_PENDING && is_early (m)
        && reached (wf, DWS_STATE_DATAIN)
        && now < (m->standoff ? SOON : SOON + 5.))
        model_fail (check, "data that is there is given back too early");
}

static void check_action (const struct model *m,
                          const struct dws_action *a,
                          double now,
                          struct model_check *check)
{
    const struct model_workflow *wf = &m->seen;

    if (a->kind != DWS_ACT_SAVE && is_busy (m, a->kind))
        model_fail (check, "repeated while under way");
    if (m->phase == DWS_PHASE_GONE && m->late && !m->abandoned
        && a->kind != DWS_ACT_RECALL && !reached (wf, DWS_STATE_TEARDOWN))
        model_fail (check, "it is forgotten that the job was abandoned");
    switch (a->kind) {
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
                if (!reached (wf, DWS_STATE_DATAOUT) || !wf->failed)
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
                || !reached (wf, wf->desired))
                model_fail (check, "a state is skipped, taken back or too early");
            if (a->state == DWS_STATE_SETUP
                && (!wf->servers || (!wf->computes && !is_early (m))))
                model_fail (check, "Setup without Servers and Computes");
            if (wf->desired == DWS_STATE_TEARDOWN
                || is_busy (m, DWS_ACT_TEARDOWN))
                model_fail (check, "Teardown is undone");
            if (a->state == DWS_STATE_PRERUN && !wf->computes && wf->first)
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
            if (m->alone && m->kept && !m->given
                && wf->desired > DWS_STATE_PRERUN)
                model_fail (check, "nodes stay drained");
            break;
        case DWS_ACT_TEARDOWN:
            check_teardown (m, now, check);
            break;
        case DWS_ACT_PROLOG_REMOVE:
            if (!reached (wf, DWS_STATE_PRERUN) || wf->deleting
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
                && (reached (wf, DWS_STATE_POSTRUN)
                    || wf->desired == DWS_STATE_DATAOUT))
                break;
            if (wf->exists && !reached (wf, DWS_STATE_TEARDOWN))
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
            if (!reached (wf, DWS_STATE_TEARDOWN))
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
        case DWS_ACT_GIVE_NODES:
            if (m->abandoned) {
                if (m->given || model_exposed (m))
                    model_fail (check, "nodes are given that may be mounted");
                break;
            }
            if (!m->alone || m->given
                || !(reached (wf, DWS_STATE_POSTRUN)
                     || wf->desired == DWS_STATE_DATAOUT
                     || reached (wf, DWS_STATE_TEARDOWN)))
                model_fail (check, "nodes are given that may be mounted");
            break;
        case DWS_ACT_MEND:
            if (!m->hosts || (m->looked && now < LATER)
                || (wf->ready && !wf->deleting))
                model_fail (check, "Computes is looked for without need");
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

    if (m->phase != DWS_PHASE_PENDING || m->exception || wf->deleting
        || wf->status == DWS_STATUS_ERROR || m->first != DWS_FIRST_YES
        || is_busy (m, DWS_ACT_RESOURCE_UPDATE)
        || is_busy (m, DWS_ACT_BREAKDOWNS))
        return;
    if (wf->first && reached (wf, DWS_STATE_DATAIN)
        && now >= (m->standoff ? SOON : LATE))
        model_fail (check, "data waits for nodes for ever");
    if (reached (wf, DWS_STATE_PROPOSAL))
        model_fail (check, "a job waits for nodes next to what is not there");
}

/* What must be on its way in this state, whichever row does it.
 */
static void check_duties (const struct model *m, double now,
                          struct model_check *check)
{
    const struct model_workflow *wf = &m->seen;
    bool live = m->phase != DWS_PHASE_GONE && !m->abandoned;

    check_queue (m, now, check);
    if (live && model_arrived (wf) && wf->status == DWS_STATUS_ERROR
        && (wf->state != DWS_STATE_TEARDOWN || m->phase == DWS_PHASE_EPILOG)
        && !wf->deleting && !(wf->other && m->phase == DWS_PHASE_DEPEND)
        && !m->exception && !m->raised && !m->teardown
        && !(m->keeps && !wf->failed) && !wf->retry
        && (m->phase != DWS_PHASE_EPILOG || m->ran)
        && !(m->unmount && m->phase == DWS_PHASE_EPILOG
             && wf->state == DWS_STATE_DATAOUT)
        && !is_busy (m, DWS_ACT_RAISE) && !is_busy (m, DWS_ACT_REJECT))
        model_fail (check, "an error is not reported");
    if (moves_on (m) && m->released && !m->abandoned
        && model_arrived (wf) && wf->status == DWS_STATUS_ERROR
        && !m->reported && !is_busy (m, DWS_ACT_REPORT)
        && !(m->keeps && (!wf->failed || wf->retry || m->recorded))
        && !is_busy (m, DWS_ACT_GIVE_NODES))
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
        && !((m->stranded || m->abandoned) && !m->given)
        && !is_busy (m, DWS_ACT_FINALIZER))
        model_fail (check, "the finalizer stays on in Teardown");
}

static void enqueue (struct model *m, int kind)
{
    int i = 0;

    while (i < MODEL_QUEUE && m->queue[i])
        i++;
    m->queue[i] = kind + 1;
}

static void perform (struct model *m, const struct dws_action *a)
{
    if (a->kind == DWS_ACT_SAVE) {
        /* Only this one has others wait for it. */
        if (a->bit != DWS_SAVED (DWS_STATE_TEARDOWN))
            return;
        m->saved = 1;
    }
    /* That their answers overtake others' matters to nobody: these succeed at
     * once. */
    if (a->kind == DWS_ACT_NOTIFY) {
        m->noted = 1;
        m->told = 1;
        return;
    }
    if (a->kind == DWS_ACT_MEND) {
        m->lost = 0;
        m->looked = 1;
        return;
    }
    if (a->kind == DWS_ACT_DRAIN) {
        m->drained = 1;
        return;
    }
    if (a->kind == DWS_ACT_KEEP_NODES) {
        m->kept = 1;
        return;
    }
    if (a->kind == DWS_ACT_DISABLE) {
        m->disabled = 1;
        return;
    }
    if (a->kind == DWS_ACT_DESIRE)
        m->want = a->state;
    if (a->kind == DWS_ACT_RESOURCE_UPDATE)
        m->want_first = a->first;
    if (a->kind == DWS_ACT_CREATE)
        m->make_first = m->asks && m->phase == DWS_PHASE_DEPEND
                        && m->first != DWS_FIRST_NO;
    if (a->kind == DWS_ACT_RAISE)
        m->mild = a->severity > 0;
    if (a->kind == DWS_ACT_REPORT && m->keeps) {
        m->recording = !*a->text ? RECORD_GOOD
                                 : a->until > 0. ? RECORD_KEPT : RECORD_LOST;
        m->current_record = 1;
    }
    if (!((CALLS | SIDE) & BIT (a->kind)))
        enqueue (m, a->kind);
    if (SIDE & BIT (a->kind))
        set_mask (m->stale, get_mask (m->stale) & ~BIT (a->kind));
    set_busy (m, get_busy (m) | BIT (a->kind));
}

static char dummy[] = "[\"#DW copy_out source=a destination=b\"]";

static struct dws_job job_facts (const struct model *m)
{
    struct dws_job job = {
        .id = 1,
        .phase = m->known ? m->phase : DWS_PHASE_GONE,
        .directives = m->known ? dummy : NULL,
        .commands = DWS_COMMAND_COPY_OUT,
        .hosts = m->hosts ? "node[0-1]" : NULL,
        .run_started = m->ran,
        .exception = m->exception,
        .abandoned = m->abandoned,
        .teardown = m->teardown,
        .t_prolog = EARLY,
        .t_epilog = m->phase >= DWS_PHASE_EPILOG ? EARLY : 0.,
        .t_gone = m->phase == DWS_PHASE_GONE ? EARLY : 0.,
        .busy = get_busy (m),
        .saved = ~(uint32_t)DWS_SAVED (DWS_STATE_TEARDOWN),
        .raised = m->raised,
        .refusal = m->refusal ? "refused" : NULL,
        .failure_tolerance = m->tolerance,
        .recalled = m->recalled,
        .released = m->released,
        .stranded = m->stranded,
        .reported = m->reported,
        .first = m->first,
        .crowded = m->crowded,
        .standoff = m->standoff,
    };

    if (m->saved)
        job.saved |= DWS_SAVED (DWS_STATE_TEARDOWN);
    return job;
}

static struct dws_workflow workflow_facts (const struct model *m)
{
    const struct model_workflow *seen = &m->seen;
    bool proposed = seen->state > DWS_STATE_PROPOSAL
        || (seen->state == DWS_STATE_PROPOSAL && seen->ready);
    return (struct dws_workflow){
        .name = "fluxjob-1",
        .userid = seen->other,
        .desired = seen->desired,
        .state = seen->state,
        .ready = seen->ready,
        .status = seen->status,
        .deleting = seen->deleting,
        .finalizer = seen->finalizer,
        .message = "message",
        .computes = proposed ? "fluxjob-1" : NULL,
        .breakdown_count = proposed ? 1 : 0,
        .breakdowns = seen->breakdowns ? dummy : NULL,
        .servers_written = seen->servers,
        .computes_written = seen->computes,
        .t_computes = m->looked ? LATE : 0.,
        .t_desired = EARLY,
        .t_transient = EARLY,
        .force_ready = seen->force,
        .lag_state = m->lag ? seen->state : DWS_STATE_NONE,
        .t_lag = m->lag ? LATE : 0.,
        .unmount = m->only_waived ? DWS_UNMOUNT_WAIVED : DWS_UNMOUNT_BUSY,
        .waived = seen->waived ? "node0" : NULL,
        .lag_missing = m->missing,
        .lagging = "node0",
        .lagging_count = m->lag ? m->lag - 1 : 0,
        .told = m->told,
        .excluded = m->excluded,
        .allocated = m->allocated ? "rabbit0" : NULL,
        .drained = m->drained,
        .disabled = m->disabled,
        .kept = m->kept,
        .given = m->given,
        .t_failed = seen->failed ? EARLY : 0.,
        .retry = seen->retry,
        .first = seen->first,
        .t_ready = seen->ready ? EARLY : 0.,
        .recorded = m->recorded,
        .t_progress = m->progress != PROGRESS_UNREAD ? LATE : 0.,
        .advancing = m->progress == PROGRESS_MADE,
    };
}

bool model_secured (const struct model *m)
{
    struct dws_job job = job_facts (m);
    struct dws_workflow wf = workflow_facts (m);

    return dws_nodes_secured (&job, m->seen.exists ? &wf : NULL);
}

bool model_exposed (const struct model *m)
{
    const struct model_workflow *wf = &m->seen;

    if (!wf->exists || reached (wf, DWS_STATE_TEARDOWN))
        return false;
    if (wf->state < DWS_STATE_PRERUN)
        return m->real.exists && m->real.state >= DWS_STATE_PRERUN
            && m->real.state < DWS_STATE_TEARDOWN;
    return !m->lag || m->missing || (m->lag > 1 && !m->drained);
}

static int ask (const struct model *m, double now,
                struct model_check *check, struct dws_actions *out)
{
    struct dws_job job = job_facts (m);
    struct dws_workflow wf = workflow_facts (m);
    struct dws_policy policy = limits;
    int row = -1;

    if (m->unmount)
        policy.release_nodes = DWS_RELEASE_UNMOUNT;
    if (m->keeps)
        policy.stage_out_retry = 10.;
    if (m->patient) {
        policy.datamovement_grace = GRACE;
        policy.prolog_timeout = SLOW;
    }
    if (reconcile_without (check->skip, &job, m->seen.exists ? &wf : NULL,
                           &policy, now, out, &row) < 0)
        model_fail (check, "dws_reconcile() failed");
    return row;
}

bool model_decide (struct model *m, double now, struct model_check *check)
{
    struct dws_actions out;
    struct dws_actions again;
    int row;

    if (!is_busy (m, DWS_ACT_DESIRE))
        m->want = 0;
    if (!is_busy (m, DWS_ACT_RESOURCE_UPDATE))
        m->want_first = 0;
    if (!is_busy (m, DWS_ACT_CREATE))
        m->make_first = 0;
    if (m->phase > DWS_PHASE_DEPEND)
        m->crowded = 0;
    if (m->phase != DWS_PHASE_PENDING)
        m->standoff = 0;
    /* From then on it does not matter. */
    if (m->phase >= DWS_PHASE_RUNNING)
        m->first = 0;
    /* The record goes when nothing is left to do. */
    if ((m->phase == DWS_PHASE_GONE) && !m->seen.exists
        && get_busy (m) == 0) {
        uint8_t same = m->same;
        uint8_t hand = m->hand;
        uint8_t tolerance = m->tolerance;
        uint8_t late = m->late;
        uint8_t patient = m->patient;
        uint8_t unmount = m->unmount;
        uint8_t let_go = m->let_go;
        uint8_t alone = m->alone;
        uint8_t lost = m->lost;
        uint8_t shrunk = m->shrunk;
        uint8_t maybe = m->maybe;
        uint8_t keeps = m->keeps;
        uint8_t listed = m->listed;
        uint8_t asks = m->asks;
        struct model_workflow real = m->real;
        memset (m, 0, sizeof (*m));
        m->phase = DWS_PHASE_GONE;
        m->real = real;
        m->same = same;
        m->hand = hand;
        m->tolerance = tolerance;
        m->late = late;
        m->patient = patient;
        m->unmount = unmount;
        m->let_go = let_go;
        m->alone = alone;
        m->lost = lost;
        m->shrunk = shrunk;
        m->maybe = maybe;
        m->keeps = keeps;
        m->listed = listed;
        m->asks = asks;
        m->looked = !model_loses (m);
        return false;
    }
    row = ask (m, now, check, &out);
    ask (m, now, check, &again);
    if (row >= 0)
        check->rows[row / 32] |= 1U << (row % 32);
    if (memcmp (&out, &again, sizeof (out)) != 0)
        model_fail (check, "the same facts give other actions");
    if (out.count > DWS_ACTIONS_MAX / 2)
        model_fail (check, "more actions than there is room for");
    if (!out.reason)
        model_fail (check, "a wait without a reason");
    for (size_t i = 0; i < out.count; i++) {
        check_action (m, &out.list[i], now, check);
        perform (m, &out.list[i]);
    }
    check_duties (m, now, check);
    return out.count > 0;
}

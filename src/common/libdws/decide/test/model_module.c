/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The module's part of the model: it carries out the actions of the real
 * dws_reconcile().
 */

#include "libdws/directive/command.h"
#include "libdws/storage/test/with.h"
#include "libdws/test/util.h"
#include "model_private.h"

static const struct dws_policy limits = {
    .tc_timeout = 10.,
    .prolog_timeout = -1.,
    .setup_timeout = 10.,
    .prerun_timeout = 10.,
    .postrun_timeout = 10.,
    .teardown_after = 10.,
    .orphan_grace = 10.,
    .data_first_timeout = 10.,
    .data_first_yield = 3.,
};

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
        m->notified = 1;
        return;
    }
    if (a->kind == DWS_ACT_REPAIR) {
        m->lost = 0;
        m->looked = 1;
        m->touched = 1;
        return;
    }
    if (a->kind == DWS_ACT_TOUCH) {
        m->touched = 1;
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
        m->want_first = a->data_first;
    if (a->kind == DWS_ACT_CREATE)
        m->make_first = m->asks && m->phase == DWS_PHASE_DEPEND
                        && m->data_first != DWS_FIRST_NO;
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

static struct dws_directives *directives (void)
{
    static struct dws_directives *dirs;

    if (!dirs)
        dirs = D ("['#DW copy_out source=a destination=b']");
    return dirs;
}

static struct dws_job job_facts (const struct model *m)
{
    struct dws_job job = {
        .id = 1,
        .phase = m->known ? m->phase : DWS_PHASE_GONE,
        .directives = m->known ? directives () : NULL,
        .commands = DWS_COMMAND_COPY_OUT,
        .hosts = m->hosts ? "node[0-1]" : NULL,
        .run_started = m->ran,
        .exception = m->exception,
        .absent = m->absent,
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
        .data_first = m->data_first,
        .remade = m->remade,
        .no_room = m->no_room,
        .contended = m->contended,
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
        .outdated = seen->outdated,
        .deleting = seen->deleting,
        .finalizer = seen->finalizer,
        .unlabelled = seen->hidden,
        .doubted = seen->doubted,
        .message = "message",
        .computes = proposed ? "fluxjob-1" : NULL,
        .breakdown_count = proposed ? 1 : 0,
        .breakdowns = seen->breakdowns ? no_breakdowns () : NULL,
        .servers_written = seen->servers,
        .computes_written = seen->computes,
        .spoilt = m->spoilt,
        .t_computes = m->looked ? LATE : 0.,
        .t_seen = EARLY,
        .t_touched = m->touched ? SOON : 0.,
        .mounts = 1,
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
        .notified = m->notified,
        .excluded = m->excluded,
        .allocated = m->allocated ? "rabbit0" : NULL,
        .drained = m->drained,
        .disabled = m->disabled,
        .barred = m->barred,
        .kept = m->kept,
        .undrained = m->undrained,
        .t_failed = seen->failed ? EARLY : 0.,
        .retry = seen->retry,
        .data_first = seen->data_first,
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

    return dws_nodes_secured (&job, m->seen.exists ? &wf : NULL)
        && dws_rabbits_secured (m->seen.exists ? &wf : NULL);
}

bool model_unbarred (const struct model *m)
{
    return m->seen.exists && !model_reached (&m->seen, DWS_STATE_TEARDOWN)
        && !m->barred;
}

bool model_exposed (const struct model *m)
{
    const struct model_workflow *wf = &m->seen;

    if (!wf->exists)
        return model_mounted (&m->real);
    if (model_reached (wf, DWS_STATE_TEARDOWN))
        return false;
    if (wf->state < DWS_STATE_PRERUN)
        return m->real.exists && m->real.state >= DWS_STATE_PRERUN
            && m->real.state < DWS_STATE_TEARDOWN;
    return !m->lag || m->missing || (m->lag > 1 && !m->drained);
}

static void ask (const struct model *m, double now,
                 struct model_check *check, struct dws_actions *out)
{
    struct dws_job job = job_facts (m);
    struct dws_workflow wf = workflow_facts (m);
    struct dws_policy policy = limits;

    if (m->unmount)
        policy.release_nodes = DWS_RELEASE_UNMOUNT;
    if (m->keeps)
        policy.stage_out_retry = 10.;
    if (m->patient)
        policy.prolog_timeout = SLOW;
    if (reconcile_without (check->skip, &job, m->seen.exists ? &wf : NULL,
                           &policy, now, out) < 0)
        model_fail (check, "dws_reconcile() failed");
}

bool model_decide (struct model *m, double now, struct model_check *check)
{
    struct dws_actions out;
    struct dws_actions again;

    if (!is_busy (m, DWS_ACT_DESIRE))
        m->want = 0;
    if (!is_busy (m, DWS_ACT_RESOURCE_UPDATE))
        m->want_first = 0;
    if (!is_busy (m, DWS_ACT_CREATE))
        m->make_first = 0;
    if (m->phase > DWS_PHASE_DEPEND)
        m->no_room = 0;
    if (m->phase != DWS_PHASE_PENDING)
        m->contended = 0;
    /* From then on it does not matter. */
    if (m->phase >= DWS_PHASE_RUNNING)
        m->data_first = 0;
    /* The record goes when nothing is left to do. */
    if (m->phase == DWS_PHASE_GONE && !m->seen.exists && m->absent
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
        m->absent = 1;
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
        m->touched = !model_loses (m);
        return false;
    }
    ask (m, now, check, &out);
    if (out.count > 0) {
        ask (m, now, check, &again);
        if (again.count != out.count || again.wake != out.wake
            || memcmp (out.list, again.list, out.count * sizeof (out.list[0])))
            model_fail (check, "the same facts give other actions");
    }
    if (out.count > DWS_ACTIONS_MAX / 2)
        model_fail (check, "more actions than there is room for");
    if (!out.reason)
        model_fail (check, "a wait without a reason");
    for (size_t i = 0; i < out.count; i++) {
        model_check_action (m, &out.list[i], now, check);
        perform (m, &out.list[i]);
    }
    model_check_duties (m, now, check);
    return out.count > 0;
}

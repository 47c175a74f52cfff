/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * All that can happen to the model in one step, faults included.
 */

#include "model_private.h"

struct steps {
    const struct model *from;
    struct model_check *check;
    model_f cb;
    void *arg;
};

static void step (struct steps *s, struct model *to)
{
    model_decide (to, EARLY, s->check);
    s->cb (to, s->arg);
}

static void step_results (struct steps *s)
{
    uint64_t calls = get_busy (s->from) & (CALLS | SIDE);
    struct model m;

    for (int kind = 0; kind < DWS_ACT_COUNT; kind++) {
        if (!(calls & BIT (kind)))
            continue;
        m = *s->from;
        set_busy (&m, get_busy (&m) & ~BIT (kind));
        step (s, &m);           // it failed
        m = *s->from;
        set_busy (&m, get_busy (&m) & ~BIT (kind));
        if (SIDE & BIT (kind))
            model_run_side (&m, kind, m.tolerance);
        else
            model_run_call (&m, kind);
        step (s, &m);
        if (kind == DWS_ACT_MOUNTS || kind == DWS_ACT_ALLOCATIONS
            || kind == DWS_ACT_PROGRESS) {
            m = *s->from;
            set_busy (&m, get_busy (&m) & ~BIT (kind));
            model_run_side (&m, kind, m.tolerance + 1);
            step (s, &m);
        }
        if (kind == DWS_ACT_SERVERS && m.tolerance > 0) {
            struct model down = *s->from;
            set_busy (&down, get_busy (&down) & ~BIT (kind));
            model_run_down (&down);
            step (s, &down);
        }
        if (kind == DWS_ACT_SERVERS && m.phase == DWS_PHASE_DEPEND) {
            struct model full = *s->from;
            set_busy (&full, get_busy (&full) & ~BIT (kind));
            full.no_room = 1;       // there is no room
            step (s, &full);
        }
        model_restart_module (&m);    // it succeeded and nobody heard of it
        step (s, &m);
    }
    if (s->from->queue[0]) {
        m = *s->from;
        model_pop (&m);
        step (s, &m);
        m = *s->from;
        model_run_command (&m, model_pop (&m), s->check);
        model_read (&m);
        step (s, &m);
        m = *s->from;
        model_run_command (&m, model_pop (&m), s->check);
        model_restart_agent (&m);
        step (s, &m);
    }
    if (is_busy (s->from, DWS_ACT_CREATE) && !s->from->real.exists
        && s->from->queue[0] == DWS_ACT_CREATE + 1) {
        m = *s->from;
        model_pop (&m);
        m.refusal = 1;
        step (s, &m);
    }
}

static void step_flux (struct steps *s)
{
    struct model m = *s->from;

    if (m.phase == DWS_PHASE_PENDING) {
        m.phase = DWS_PHASE_PROLOG;
        m.hosts = 1;
        step (s, &m);
    }
    m = *s->from;
    if (m.phase == DWS_PHASE_PENDING && m.seen.data_first) {
        m.contended = !m.contended;     // seen by the module
        step (s, &m);
    }
    m = *s->from;
    if (m.phase < DWS_PHASE_EPILOG) {
        model_end_phase (&m);         // cancelled, or finished
        step (s, &m);
    }
    m = *s->from;
    if (m.phase == DWS_PHASE_EPILOG) {
        m.exception = 1;
        m.teardown = 1;
        step (s, &m);
    }
    m = *s->from;
    if (m.phase == DWS_PHASE_EPILOG && !m.hand && !m.asks) {
        model_time_out (&m);
        step (s, &m);
    }
    m = *s->from;
    if (m.phase == DWS_PHASE_EPILOG && m.abandoned && model_secured (&m)) {
        model_abandon (&m, s->check);
        step (s, &m);
    }
    m = *s->from;
    if (m.disabled && !m.barred) {
        m.barred = 1;
        step (s, &m);
    }
    m = *s->from;
    if (m.phase == DWS_PHASE_EPILOG && m.late) {
        model_drain (&m);
        step (s, &m);
    }
}

/* The plugin is away when the job ends, and comes back. A job that it holds in
 * prolog or epilog waits for it.
 */
static void step_plugin (struct steps *s)
{
    struct model m = *s->from;

    if (m.phase == DWS_PHASE_PROLOG || m.phase >= DWS_PHASE_EPILOG)
        return;
    m.alone = m.phase == DWS_PHASE_RUNNING;
    m.ran = m.alone;
    m.phase = DWS_PHASE_GONE;
    step (s, &m);
}

/* What the module knows after a restart, once it has read what it needs, is what
 * it knew before.
 */
static void check_restart (const struct model *before,
                           const struct model *after,
                           struct model_check *check)
{
    struct model a = *before;
    struct model b = *after;
    bool gone = a.phase == DWS_PHASE_GONE;

    if (gone) {
        model_run_call (&a, DWS_ACT_RECALL);
        model_run_call (&b, DWS_ACT_RECALL);
    }
    else if (a.phase >= DWS_PHASE_PROLOG) {
        model_run_call (&a, DWS_ACT_HOSTS);
        model_run_call (&b, DWS_ACT_HOSTS);
    }
    if (a.phase != b.phase || a.abandoned != b.abandoned
        || (!a.abandoned && a.released != b.released)
        || a.stranded != b.stranded || (!gone && a.data_first != b.data_first)
        || (!gone && (a.ran != b.ran || a.exception != b.exception
                      || a.teardown != b.teardown || a.hosts != b.hosts)))
        model_fail (check, "a fact is forgotten by a restart");
}

static void step_status (struct steps *s)
{
    struct model m = *s->from;
    struct model_workflow *wf = &m.real;

    if (!model_arrived (wf) || wf->deleting)
        return;
    /* The storage of a job that runs may get into trouble, once. */
    if (m.phase == DWS_PHASE_RUNNING && wf->ready && !m.hand) {
        m.hand = 1;
        wf->ready = 0;
        wf->status = DWS_STATUS_TRANSIENT;
        step (s, &m);
        model_learn (&m);
        step (s, &m);
    }
    m = *s->from;
    if (wf->ready)
        return;
    for (int status = DWS_STATUS_DRIVERWAIT; status <= DWS_STATUS_ERROR;
         status++) {
        if (status != DWS_STATUS_COMPLETED && status != wf->status) {
            m = *s->from;
            wf->status = status;
            step (s, &m);
            model_learn (&m);
            step (s, &m);
            if (status != DWS_STATUS_ERROR || wf->state != DWS_STATE_SETUP
                || wf->outdated || m.hand)
                continue;
            m.hand = 1;         // one trouble of this kind in a job's life
            wf->outdated = 1;
            model_learn (&m);
            step (s, &m);
        }
    }
}

/* Nothing is, or will be, mounted for a job that has ended before its prolog.
 */
static bool may_mount (const struct model *m)
{
    return m->real.state > DWS_STATE_PROPOSAL && m->phase >= DWS_PHASE_PROLOG
        && (m->phase != DWS_PHASE_GONE || m->let_go || m->alone);
}

/* The job's owner asks for another try, which is noted in the workflow.
 */
static void step_retry (struct steps *s)
{
    struct model m = *s->from;

    if (!m.keeps || !m.real.failed || m.real.retry || m.real.ready
        || m.real.status != DWS_STATUS_ERROR
        || m.real.desired != DWS_STATE_DATAOUT)
        return;
    m.real.retry = 1;
    step (s, &m);
    model_learn (&m);
    step (s, &m);
}

/* Somebody moves or deletes the workflow, takes its label off, or it is lost, or its
 * Computes is; or a list is older than the workflow. That, or the epilog timeout,
 * happens once in a job's life.
 */
static void step_hand (struct steps *s)
{
    struct model m = *s->from;

    if (m.hand || !m.real.exists
        || (m.asks && m.phase > DWS_PHASE_PROLOG))
        return;
    m.hand = 1;
    m.real.deleting = 1;
    step (s, &m);
    m = *s->from;
    m.hand = 1;
    model_remove_real (&m);
    step (s, &m);
    m = *s->from;
    m.hand = 1;
    m.real.desired = DWS_STATE_TEARDOWN;
    step (s, &m);
    m = *s->from;
    if (m.seen.exists || !m.real.other) {
        m.hand = 1;
        m.real.hidden = 1;
        step (s, &m);
    }
    m = *s->from;
    if (m.seen.exists) {
        m.hand = 1;
        m.seen.doubted = 1;
        step (s, &m);
    }
    m = *s->from;
    if (m.same && m.phase <= DWS_PHASE_PROLOG && m.seen.exists
        && (m.seen.state == DWS_STATE_PROPOSAL
            || m.seen.state == DWS_STATE_SETUP)) {
        m.hand = 1;
        m.spoilt = 1;
        step (s, &m);
    }
    m = *s->from;
    if (model_loses (&m) && may_mount (&m)) {
        m.hand = 1;
        m.lost = 1;
        step (s, &m);
    }
    m = *s->from;
    if (model_accepts (&m.real, m.real.state + 1)) {
        m.hand = 1;
        m.real.desired = m.real.state + 1;
        step (s, &m);
    }
}

void model_steps (const struct model *from, struct model_check *check,
                  model_f cb, void *arg)
{
    struct steps s = { from, check, cb, arg };
    struct model m;

    /* A job that runs is like any other. */
    if (from->asks && (from->ran || from->phase == DWS_PHASE_RUNNING))
        return;
    step_results (&s);
    step_flux (&s);
    step_plugin (&s);
    step_status (&s);
    step_hand (&s);
    step_retry (&s);
    m = *from;
    if (model_control (&m, WORLD_WELL)) {
        step (&s, &m);
        model_learn (&m);
        step (&s, &m);
    }
    m = *from;
    model_learn (&m);
    step (&s, &m);
    m = *from;
    model_restart_agent (&m);
    step (&s, &m);
    m = *from;
    model_restart_module (&m);
    check_restart (from, &m, check);
    step (&s, &m);
    for (int i = 0; i < 3; i++) {
        static const double times[] = { SOON, LATE, LATER };

        m = *from;
        model_decide (&m, times[i], check);
        cb (&m, arg);
    }
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See model.h. The module's side of the model carries out the actions of
 * the real dws_reconcile() and checks the invariants at each one. Time is
 * either early (no deadline has passed) or late (all have).
 */

#include <string.h>

#include "model.h"

#define EARLY 1.
#define LATE 1000.

static const struct dws_policy policy = {
    .tc_timeout = 10.,
    .setup_timeout = 10.,
    .prerun_timeout = 10.,
    .postrun_timeout = 10.,
    .teardown_after = 10.,
    .orphan_grace = 10.,
};

#define BIT(kind) DWS_BUSY (kind)

/* Requests to the job manager and the KVS.
 */
#define CALLS (BIT (DWS_ACT_RESOURCE_UPDATE) | BIT (DWS_ACT_REJECT) \
               | BIT (DWS_ACT_HOSTS) | BIT (DWS_ACT_PROLOG_REMOVE) \
               | BIT (DWS_ACT_EPILOG_REMOVE) | BIT (DWS_ACT_RAISE) \
               | BIT (DWS_ACT_SAVE))

/* Commands on other objects than the workflow: they overtake each other.
 */
#define SIDE (BIT (DWS_ACT_BREAKDOWNS) | BIT (DWS_ACT_SERVERS) \
              | BIT (DWS_ACT_COMPUTES) | BIT (DWS_ACT_MOUNTS) \
              | BIT (DWS_ACT_ALLOCATIONS) | BIT (DWS_ACT_EXCLUDE))

static uint32_t get_mask (const uint8_t mask[3])
{
    return mask[0] | mask[1] << 8 | mask[2] << 16;
}

static void set_mask (uint8_t mask[3], uint32_t bits)
{
    mask[0] = bits & 0xff;
    mask[1] = bits >> 8 & 0xff;
    mask[2] = bits >> 16 & 0xff;
}

static uint32_t get_busy (const struct model *m)
{
    return get_mask (m->busy);
}

static void set_busy (struct model *m, uint32_t busy)
{
    set_mask (m->busy, busy);
}

static bool is_busy (const struct model *m, int kind)
{
    return (get_busy (m) & BIT (kind)) != 0;
}

struct model model_start (int tolerance)
{
    struct model m;

    memset (&m, 0, sizeof (m));
    m.phase = DWS_PHASE_DEPEND;
    m.known = 1;
    m.tolerance = tolerance;
    return m;
}

bool model_over (const struct model *m)
{
    return m->phase == DWS_PHASE_GONE && !m->real.exists && !m->seen.exists
        && get_busy (m) == 0;
}

/* The module
 */

static void fail (struct model_check *check, const char *why)
{
    if (!check->failure)
        check->failure = why;
}

static bool arrived (const struct model_workflow *wf)
{
    return wf->exists && wf->desired == wf->state
        && wf->state != DWS_STATE_NONE;
}

static bool reached (const struct model_workflow *wf, int state)
{
    return arrived (wf) && wf->state == state && wf->ready;
}

static bool has_timeout (int state)
{
    return state == DWS_STATE_SETUP || state == DWS_STATE_PRERUN
        || state == DWS_STATE_POSTRUN || state == DWS_STATE_DATAOUT;
}

static void check_teardown (const struct model *m, double now,
                            struct model_check *check)
{
    const struct model_workflow *wf = &m->seen;

    if (wf->desired == DWS_STATE_TEARDOWN)
        fail (check, "Teardown is asked for twice");
    if (m->phase == DWS_PHASE_RUNNING)
        fail (check, "Teardown under a running job");
    if (m->phase == DWS_PHASE_EPILOG && m->ran && !m->teardown
        && wf->desired >= DWS_STATE_PRERUN
        && !reached (wf, DWS_STATE_DATAOUT)
        && !(wf->desired == DWS_STATE_PRERUN && !reached (wf, wf->desired))
        && wf->status != DWS_STATUS_ERROR
        && now == EARLY)
        fail (check, "data is lost");
}

static void check_action (const struct model *m,
                          const struct dws_action *a,
                          double now,
                          struct model_check *check)
{
    const struct model_workflow *wf = &m->seen;

    if (a->kind != DWS_ACT_SAVE && is_busy (m, a->kind))
        fail (check, "repeated while under way");
    switch (a->kind) {
        case DWS_ACT_CREATE:
            if (wf->exists)
                fail (check, "create although it exists");
            if (m->phase > DWS_PHASE_PROLOG || m->exception)
                fail (check, "create for a job that ends");
            break;
        case DWS_ACT_RESOURCE_UPDATE:
            if (m->phase != DWS_PHASE_DEPEND
                || !reached (wf, DWS_STATE_PROPOSAL) || !wf->breakdowns)
                fail (check, "resource-update before Proposal");
            break;
        case DWS_ACT_DESIRE:
            if ((int)a->state != wf->desired + 1
                || !reached (wf, wf->desired))
                fail (check, "a state is skipped, taken back or too early");
            if (a->state == DWS_STATE_SETUP
                && (!wf->servers || !wf->computes))
                fail (check, "Setup without Servers and Computes");
            if (wf->desired == DWS_STATE_TEARDOWN
                || is_busy (m, DWS_ACT_TEARDOWN))
                fail (check, "Teardown is undone");
            if (m->phase != DWS_PHASE_PROLOG
                && !(m->phase == DWS_PHASE_EPILOG && m->ran))
                fail (check, "a state that the job does not need");
            break;
        case DWS_ACT_TEARDOWN:
            check_teardown (m, now, check);
            break;
        case DWS_ACT_PROLOG_REMOVE:
            if (!reached (wf, DWS_STATE_PRERUN) || wf->deleting
                || is_busy (m, DWS_ACT_TEARDOWN))
                fail (check, "prolog released before PreRun is ready");
            break;
        case DWS_ACT_EPILOG_REMOVE:
            if (wf->exists && !reached (wf, DWS_STATE_TEARDOWN))
                fail (check, "epilog released before Teardown");
            if (wf->exists && !m->saved)
                fail (check, "epilog released before the record is saved");
            break;
        case DWS_ACT_FINALIZER:
            if (wf->state != DWS_STATE_TEARDOWN && !wf->deleting)
                fail (check, "finalizer dropped before Teardown");
            break;
        case DWS_ACT_DELETE:
            if (!reached (wf, DWS_STATE_TEARDOWN))
                fail (check, "deleted before Teardown");
            break;
        case DWS_ACT_FORCE_READY:
            if (m->lag - 1 > m->tolerance || !m->excluded || wf->ready
                || m->phase != DWS_PHASE_PROLOG)
                fail (check, "forced ready without need");
            break;
        case DWS_ACT_DRAIN:
            if (m->lag < 2 || m->drained)
                fail (check, "drain of nothing");
            break;
        case DWS_ACT_DISABLE:
            if (!m->abandoned || m->disabled)
                fail (check, "rabbits disabled without need");
            break;
        default:
            break;
    }
}

/* What must be on its way in this state, whichever row does it.
 */
static void check_duties (const struct model *m, struct model_check *check)
{
    const struct model_workflow *wf = &m->seen;
    bool live = m->phase != DWS_PHASE_GONE && !m->abandoned;

    if (live && arrived (wf) && wf->status == DWS_STATUS_ERROR
        && wf->state != DWS_STATE_TEARDOWN && !wf->deleting
        && !m->exception && !m->raised && !m->teardown
        && (m->phase != DWS_PHASE_EPILOG || m->ran)
        && !is_busy (m, DWS_ACT_RAISE) && !is_busy (m, DWS_ACT_REJECT))
        fail (check, "an error is not reported");
    if (arrived (wf) && wf->state == DWS_STATE_TEARDOWN && wf->finalizer
        && m->phase != DWS_PHASE_RUNNING
        && (m->phase >= DWS_PHASE_EPILOG || !m->exception)
        && !is_busy (m, DWS_ACT_FINALIZER))
        fail (check, "the finalizer stays on in Teardown");
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
    /* These have no effect on what comes after: they succeed at once. */
    if (a->kind == DWS_ACT_NOTIFY)
        return;
    if (a->kind == DWS_ACT_DRAIN) {
        m->drained = 1;
        return;
    }
    if (a->kind == DWS_ACT_DISABLE) {
        m->disabled = 1;
        return;
    }
    if (a->kind == DWS_ACT_DESIRE)
        m->want = a->state;
    if (!((CALLS | SIDE) & BIT (a->kind)))
        enqueue (m, a->kind);
    if (SIDE & BIT (a->kind))
        set_mask (m->stale, get_mask (m->stale) & ~BIT (a->kind));
    set_busy (m, get_busy (m) | BIT (a->kind));
}

static int ask (const struct model *m, double now,
                struct model_check *check, struct dws_actions *out)
{
    static char dummy[] = "[]";
    struct dws_job job = {
        .id = 1,
        .phase = m->known ? m->phase : DWS_PHASE_GONE,
        .directives = m->known ? dummy : NULL,
        .hosts = m->hosts ? "node[0-1]" : NULL,
        .run_started = m->ran,
        .exception = m->exception,
        .abandoned = m->abandoned,
        .teardown = m->teardown,
        .t_epilog = m->phase >= DWS_PHASE_EPILOG ? EARLY : 0.,
        .t_gone = m->phase == DWS_PHASE_GONE ? EARLY : 0.,
        .busy = get_busy (m),
        .saved = ~(uint32_t)DWS_SAVED (DWS_STATE_TEARDOWN),
        .raised = m->raised,
        .refusal = m->refusal ? "refused" : NULL,
        .failure_tolerance = m->tolerance,
    };
    const struct model_workflow *seen = &m->seen;
    bool proposed = seen->state > DWS_STATE_PROPOSAL
        || (seen->state == DWS_STATE_PROPOSAL && seen->ready);
    struct dws_workflow wf = {
        .name = "fluxjob-1",
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
        .t_desired = EARLY,
        .t_transient = EARLY,
        .force_ready = seen->force,
        .lag_state = m->lag ? seen->state : DWS_STATE_NONE,
        .lagging = "node0",
        .lagging_count = m->lag ? m->lag - 1 : 0,
        .excluded = m->excluded,
        .allocated = m->allocated ? "rabbit0" : NULL,
        .drained = m->drained,
        .disabled = m->disabled,
    };
    int row = -1;

    if (m->saved)
        job.saved |= DWS_SAVED (DWS_STATE_TEARDOWN);
    if (reconcile_without (check->skip, &job, seen->exists ? &wf : NULL,
                           &policy, now, out, &row) < 0)
        fail (check, "dws_reconcile() failed");
    return row;
}

static bool decide (struct model *m, double now, struct model_check *check)
{
    struct dws_actions out;
    struct dws_actions again;
    int row;

    if (!is_busy (m, DWS_ACT_DESIRE))
        m->want = 0;
    /* The record goes when nothing is left to do. */
    if ((m->phase == DWS_PHASE_GONE) && !m->seen.exists
        && get_busy (m) == 0) {
        uint8_t same = m->same;
        uint8_t hand = m->hand;
        uint8_t tolerance = m->tolerance;
        struct model_workflow real = m->real;
        memset (m, 0, sizeof (*m));
        m->phase = DWS_PHASE_GONE;
        m->real = real;
        m->same = same;
        m->hand = hand;
        m->tolerance = tolerance;
        return false;
    }
    row = ask (m, now, check, &out);
    ask (m, now, check, &again);
    if (row >= 0)
        check->rows[row / 32] |= 1U << (row % 32);
    if (memcmp (&out, &again, sizeof (out)) != 0)
        fail (check, "the same facts give other actions");
    if (out.count > DWS_ACTIONS_MAX / 2)
        fail (check, "more actions than there is room for");
    if (!out.reason)
        fail (check, "a wait without a reason");
    for (size_t i = 0; i < out.count; i++) {
        check_action (m, &out.list[i], now, check);
        perform (m, &out.list[i]);
    }
    check_duties (m, check);
    return out.count > 0;
}

/* The module's view becomes what there is.
 */
static void learn (struct model *m)
{
    struct model_workflow old = m->seen;
    bool keep = m->same && old.exists && m->real.exists;

    if (m->phase == DWS_PHASE_GONE && !old.exists && get_busy (m) == 0)
        m->known = 0;
    m->seen = m->real;
    m->seen.breakdowns = keep ? old.breakdowns : 0;
    m->seen.servers = keep ? old.servers : 0;
    m->seen.computes = keep ? old.computes : 0;
    if (!keep || old.state != m->real.state) {
        m->lag = 0;
        m->excluded = 0;
        m->drained = 0;
    }
    if (!keep) {
        m->allocated = 0;
        m->disabled = 0;
    }
    if (old.exists && !keep) {
        set_mask (m->stale, get_busy (m) & SIDE);
        m->saved = 0;
    }
    m->same = m->real.exists;
}

/* One end of something under way
 */

static void end_phase (struct model *m)
{
    m->ran = m->phase == DWS_PHASE_RUNNING;
    m->phase = DWS_PHASE_EPILOG;
}

static void raise_exception (struct model *m)
{
    m->exception = 1;
    m->raised = 1;
    if (m->phase == DWS_PHASE_EPILOG)
        m->teardown = 1;
}

static void run_call (struct model *m, int kind)
{
    switch (kind) {
        case DWS_ACT_RESOURCE_UPDATE:
            if (m->phase == DWS_PHASE_DEPEND)
                m->phase = DWS_PHASE_PENDING;
            break;
        case DWS_ACT_REJECT:
        case DWS_ACT_RAISE:
            raise_exception (m);
            break;
        case DWS_ACT_HOSTS:
            m->hosts = 1;
            break;
        case DWS_ACT_PROLOG_REMOVE:
            if (m->phase == DWS_PHASE_PROLOG)
                m->phase = DWS_PHASE_RUNNING;
            break;
        case DWS_ACT_EPILOG_REMOVE:
            if (m->phase == DWS_PHASE_EPILOG)
                m->phase = DWS_PHASE_GONE;
            break;
        default:
            break;
    }
}

/* 'lagging': how many hosts a list of mounts or allocations shows.
 */
static void run_side (struct model *m, int kind, int lagging)
{
    bool current = !(get_mask (m->stale) & BIT (kind)) && m->seen.exists;

    set_mask (m->stale, get_mask (m->stale) & ~BIT (kind));
    if (kind == DWS_ACT_MOUNTS || kind == DWS_ACT_ALLOCATIONS) {
        if (current && (kind == DWS_ACT_MOUNTS
                        || m->seen.state == DWS_STATE_SETUP)) {
            m->lag = lagging + 1;
            m->excluded = 0;
            m->drained = 0;
        }
        if (current && kind == DWS_ACT_ALLOCATIONS)
            m->allocated = 1;
        return;
    }
    if (!m->real.exists || !m->real.breakdowns)
        return;
    if (kind == DWS_ACT_SERVERS)
        m->real.servers = 1;
    if (kind == DWS_ACT_COMPUTES)
        m->real.computes = 1;
    if (!current)
        return;
    if (kind == DWS_ACT_BREAKDOWNS)
        m->seen.breakdowns = 1;
    if (kind == DWS_ACT_SERVERS)
        m->seen.servers = 1;
    if (kind == DWS_ACT_COMPUTES)
        m->seen.computes = 1;
    if (kind == DWS_ACT_EXCLUDE && m->lag)
        m->excluded = 1;
}

static bool accepts (const struct model_workflow *wf, int state)
{
    return wf->state != DWS_STATE_TEARDOWN
        && state == wf->state + 1 && wf->ready;
}

/* The first command in the queue reaches the API server.
 */
static void run_command (struct model *m, int kind, struct model_check *check)
{
    struct model_workflow *wf = &m->real;

    if (kind == DWS_ACT_CREATE) {
        if (!wf->exists) {
            memset (wf, 0, sizeof (*wf));
            wf->exists = 1;
            wf->desired = DWS_STATE_PROPOSAL;
            wf->finalizer = 1;
            m->same = 0;
        }
        return;
    }
    if (!wf->exists)
        return;
    if (kind == DWS_ACT_DESIRE && accepts (wf, m->want)) {
        if (m->want == DWS_STATE_SETUP && m->same
            && (!wf->servers || !wf->computes))
            fail (check, "Setup before Servers and Computes were written");
        wf->desired = m->want;
    }
    else if (kind == DWS_ACT_TEARDOWN)
        wf->desired = DWS_STATE_TEARDOWN;
    else if (kind == DWS_ACT_FINALIZER)
        wf->finalizer = 0;
    else if (kind == DWS_ACT_FORCE_READY)
        wf->force = 1;
    else if (kind == DWS_ACT_DELETE)
        wf->deleting = 1;
}

static int pop (struct model *m)
{
    int kind = m->queue[0] - 1;

    memmove (m->queue, m->queue + 1, MODEL_QUEUE - 1);
    m->queue[MODEL_QUEUE - 1] = 0;
    set_busy (m, get_busy (m) & ~BIT (kind));
    return kind;
}

/* The world
 */

static void restart_agent (struct model *m)
{
    memset (m->queue, 0, sizeof (m->queue));
    set_busy (m, get_busy (m) & CALLS);
    m->want = 0;
    set_mask (m->stale, 0);
    learn (m);
}

static void restart_module (struct model *m)
{
    memset (m->queue, 0, sizeof (m->queue));
    memset (&m->seen, 0, sizeof (m->seen));
    set_busy (m, 0);
    m->want = 0;
    set_mask (m->stale, 0);
    m->known = m->phase != DWS_PHASE_GONE;
    m->teardown = 0;
    m->abandoned = 0;
    m->raised = 0;
    m->refusal = 0;
    m->hosts = 0;
    m->saved = 0;
    m->same = 0;
    m->lag = 0;
    m->excluded = 0;
    m->allocated = 0;
    m->drained = 0;
    m->disabled = 0;
    if (!m->known) {
        m->ran = 0;
        m->exception = 0;
    }
    learn (m);
}

static void remove_real (struct model *m)
{
    memset (&m->real, 0, sizeof (m->real));
    m->same = 0;
}

/* The DWS controllers. 'world' says what they do not manage.
 */
static bool control (struct model *m, enum model_world world)
{
    struct model_workflow *wf = &m->real;

    if (!wf->exists)
        return false;
    if (wf->deleting) {
        if (wf->finalizer)
            return false;
        remove_real (m);
        return true;
    }
    if (wf->state != wf->desired) {
        wf->state = wf->desired;
        wf->ready = 0;
        wf->status = DWS_STATUS_DRIVERWAIT;
        wf->force = 0;
        return true;
    }
    if (wf->ready)
        return false;
    if (wf->force) {
        wf->ready = 1;
        wf->status = DWS_STATUS_COMPLETED;
        return true;
    }
    if (world == WORLD_STUCK && has_timeout (wf->state))
        return false;
    if (world == WORLD_TRANSIENT && wf->state != DWS_STATE_TEARDOWN) {
        if (wf->status == DWS_STATUS_TRANSIENT)
            return false;
        wf->status = DWS_STATUS_TRANSIENT;
        return true;
    }
    wf->ready = 1;
    wf->status = DWS_STATUS_COMPLETED;
    wf->breakdowns = 1;
    return true;
}

/* The module has not seen the latest yet.
 */
static bool is_behind (const struct model *m)
{
    struct model_workflow seen = m->seen;

    if (!m->real.exists || !seen.exists)
        return m->real.exists != seen.exists;
    seen.breakdowns = m->real.breakdowns;
    seen.servers = m->real.servers;
    seen.computes = m->real.computes;
    return !m->same || memcmp (&seen, &m->real, sizeof (seen)) != 0;
}

bool model_settle (struct model *m, enum model_world world,
                   struct model_check *check)
{
    uint32_t calls = get_busy (m) & (CALLS | SIDE);

    if (m->queue[0]) {
        run_command (m, pop (m), check);
        learn (m);
    }
    else if (is_behind (m))
        learn (m);
    else if (calls) {
        int kind = __builtin_ctz (calls);
        set_busy (m, get_busy (m) & ~BIT (kind));
        if (SIDE & BIT (kind))
            run_side (m, kind, 1);
        else
            run_call (m, kind);
    }
    else if (control (m, world))
        learn (m);
    else if (m->exception && m->phase < DWS_PHASE_EPILOG)
        end_phase (m);
    else if (m->phase == DWS_PHASE_PENDING) {
        m->phase = DWS_PHASE_PROLOG;
        m->hosts = 1;
    }
    else if (m->phase == DWS_PHASE_RUNNING)
        end_phase (m);
    else if (decide (m, EARLY, check) || decide (m, LATE, check))
        return true;
    else
        return false;
    decide (m, EARLY, check);
    return true;
}

/* All that can happen
 */

struct steps {
    const struct model *from;
    struct model_check *check;
    model_f cb;
    void *arg;
};

static void step (struct steps *s, struct model *to)
{
    decide (to, EARLY, s->check);
    s->cb (to, s->arg);
}

static void step_results (struct steps *s)
{
    uint32_t calls = get_busy (s->from) & (CALLS | SIDE);
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
            run_side (&m, kind, m.tolerance);
        else
            run_call (&m, kind);
        step (s, &m);
        if (kind == DWS_ACT_MOUNTS || kind == DWS_ACT_ALLOCATIONS) {
            m = *s->from;
            set_busy (&m, get_busy (&m) & ~BIT (kind));
            run_side (&m, kind, m.tolerance + 1);
            step (s, &m);
        }
        restart_module (&m);    // it succeeded and nobody heard of it
        step (s, &m);
    }
    if (s->from->queue[0]) {
        m = *s->from;
        pop (&m);
        step (s, &m);
        m = *s->from;
        run_command (&m, pop (&m), s->check);
        learn (&m);
        step (s, &m);
        m = *s->from;
        run_command (&m, pop (&m), s->check);
        restart_agent (&m);
        step (s, &m);
    }
    if (is_busy (s->from, DWS_ACT_CREATE) && !s->from->real.exists
        && s->from->queue[0] == DWS_ACT_CREATE + 1) {
        m = *s->from;
        pop (&m);
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
    if (m.phase < DWS_PHASE_EPILOG) {
        end_phase (&m);         // cancelled, or finished
        step (s, &m);
    }
    m = *s->from;
    if (m.phase == DWS_PHASE_EPILOG) {
        m.exception = 1;
        m.teardown = 1;
        step (s, &m);
    }
    m = *s->from;
    if (m.phase == DWS_PHASE_EPILOG && !m.hand) {
        m.exception = 1;
        m.abandoned = 1;        // the epilog timeout
        m.phase = DWS_PHASE_GONE;
        m.hand = 1;
        step (s, &m);
    }
}

static void step_status (struct steps *s)
{
    struct model m = *s->from;
    struct model_workflow *wf = &m.real;

    if (!arrived (wf) || wf->ready || wf->deleting)
        return;
    for (int status = DWS_STATUS_DRIVERWAIT; status <= DWS_STATUS_ERROR;
         status++) {
        if (status != DWS_STATUS_COMPLETED && status != wf->status) {
            m = *s->from;
            wf->status = status;
            step (s, &m);
            learn (&m);
            step (s, &m);
        }
    }
}

/* Somebody moves or deletes the workflow, or it is lost. That, or the epilog
 * timeout, happens once in a job's life.
 */
static void step_hand (struct steps *s)
{
    struct model m = *s->from;

    if (m.hand || !m.real.exists)
        return;
    m.hand = 1;
    m.real.deleting = 1;
    step (s, &m);
    m = *s->from;
    m.hand = 1;
    remove_real (&m);
    step (s, &m);
    m = *s->from;
    m.hand = 1;
    m.real.desired = DWS_STATE_TEARDOWN;
    step (s, &m);
    m = *s->from;
    if (accepts (&m.real, m.real.state + 1)) {
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

    step_results (&s);
    step_flux (&s);
    step_status (&s);
    step_hand (&s);
    m = *from;
    if (control (&m, WORLD_WELL)) {
        step (&s, &m);
        learn (&m);
        step (&s, &m);
    }
    m = *from;
    learn (&m);
    step (&s, &m);
    m = *from;
    restart_agent (&m);
    step (&s, &m);
    m = *from;
    restart_module (&m);
    step (&s, &m);
    m = *from;
    decide (&m, LATE, check);
    cb (&m, arg);
}

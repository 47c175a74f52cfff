/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See model.h. Flux, Kubernetes and what is between them and the module. Time
 * is a few moments only: time limits have passed, or not.
 */

#include "model_private.h"

struct model model_start (int tolerance, int patient, int unmount)
{
    struct model m;

    memset (&m, 0, sizeof (m));
    m.phase = DWS_PHASE_DEPEND;
    m.known = 1;
    m.absent = 1;
    m.tolerance = tolerance;
    m.patient = patient;
    m.unmount = unmount;
    m.looked = !model_loses (&m);
    m.touched = !model_loses (&m);
    return m;
}

struct model model_start_kept (int unmount)
{
    struct model m = model_start (0, 0, unmount);

    m.phase = DWS_PHASE_EPILOG;
    m.ran = 1;
    m.hosts = 1;
    m.hand = 1;
    m.keeps = 1;
    m.looked = 1;
    m.touched = 1;
    m.real = (struct model_workflow){
        .exists = 1,
        .desired = DWS_STATE_DATAOUT,
        .state = DWS_STATE_DATAOUT,
        .status = DWS_STATUS_DRIVERWAIT,
        .finalizer = 1,
        .breakdowns = 1,
        .servers = 1,
        .computes = 1,
    };
    model_read (&m);
    return m;
}

struct model model_start_first (int tolerance, int unmount)
{
    struct model m = model_start (tolerance, 0, unmount);

    m.asks = 1;
    m.data_first = DWS_FIRST_UNSAID;
    return m;
}

struct model model_start_again (int unmount)
{
    struct model m = model_start (0, 0, unmount);

    m.real = (struct model_workflow){
        .exists = 1,
        .desired = DWS_STATE_PROPOSAL,
        .finalizer = 1,
        .other = 1,
    };
    return m;
}

/* A Computes that is lost is the same to all jobs: one kind of them is enough.
 */
bool model_loses (const struct model *m)
{
    return !m->tolerance && !m->patient && !m->keeps && !m->asks;
}

bool model_over (const struct model *m)
{
    return m->phase == DWS_PHASE_GONE && !m->real.exists && !m->seen.exists
        && get_busy (m) == 0;
}

/* So many hosts lag, less one; 0: that is not known. What is done about others
 * says nothing about them.
 */
static void set_lag (struct model *m, int lag)
{
    if (lag && lag == m->lag)
        return;
    m->lag = lag;
    m->missing = 0;
    m->excluded = 0;
    m->notified = 0;
    m->drained = 0;
    m->only_waived = 0;
}

void model_read (struct model *m)
{
    struct model_workflow old = m->seen;
    bool keep = m->same && old.exists && m->real.exists;

    if (m->phase == DWS_PHASE_GONE && !old.exists && get_busy (m) == 0)
        m->known = 0;
    m->seen = m->real;
    m->seen.breakdowns = keep ? old.breakdowns : 0;
    m->seen.servers = keep ? old.servers : 0;
    m->seen.computes = keep ? old.computes : 0;
    if (!keep || old.status != m->real.status || old.ready != m->real.ready) {
        m->recorded = 0;
        m->current_record = 0;
    }
    if (!keep || old.state != m->real.state)
        set_lag (m, 0);
    if (!keep || old.state != m->real.state || old.desired != m->real.desired) {
        m->progress = PROGRESS_UNREAD;
        m->looked = !model_loses (m);
        m->touched = !model_loses (m);
    }
    if (!keep) {
        m->allocated = 0;
        m->disabled = 0;
        m->barred = 0;
        m->kept = 0;
        m->undrained = 0;
        m->spoilt = 0;
    }
    if (old.exists && !keep && old.outdated)
        m->remade = 1;
    if (old.exists && !keep) {
        set_mask (m->stale, get_busy (m) & SIDE);
        m->saved = 0;
    }
    m->same = m->real.exists;
    m->absent = !m->real.exists;
    if (!m->real.exists)
        m->maybe = 0;
}

/* One that loses the label by which a watch selects looks like one that is deleted.
 */
void model_learn (struct model *m)
{
    if (m->real.exists && !m->real.hidden)
        model_read (m);
    else if (m->seen.exists && !m->seen.hidden)
        m->seen.doubted = 1;
}

/* In that of an older release only the label says whose it is. Nobody asks for one of
 * a job that is not known, so one of these has the annotation.
 */
void model_list (struct model *m)
{
    if (m->real.exists && !(m->real.hidden && m->known))
        model_read (m);
    else if (m->seen.exists)
        m->seen.doubted = 1;
    /* The module looks for the workflow of a job whose nodes are drained. */
    else if (m->maybe)
        m->absent = 0;
}

/* One end of something under way
 */

void model_end_phase (struct model *m)
{
    m->ran = m->phase == DWS_PHASE_RUNNING;
    m->phase = DWS_PHASE_EPILOG;
}

/* The plugin asks the module to drain the nodes that are mounted.
 */
void model_time_out (struct model *m)
{
    m->exception = 1;
    m->abandoned = 1;
    m->late = 1;
    m->hand = 1;
}

/* The module has said that they are.
 */
void model_abandon (struct model *m, struct model_check *check)
{
    if (model_exposed (m))
        model_fail (check, "others may get nodes that are mounted");
    if (model_unbarred (m))
        model_fail (check, "others may be placed on rabbits that are taken");
    m->phase = DWS_PHASE_GONE;
}

/* It has not, in time, and the plugin drains all nodes. The module sees that.
 */
void model_drain (struct model *m)
{
    m->phase = DWS_PHASE_GONE;
    m->maybe = m->real.exists || m->seen.exists;
    if (m->abandoned)
        m->undrained = 0;
}

static void raise_exception (struct model *m)
{
    m->exception = 1;
    m->raised = 1;
    if (m->phase == DWS_PHASE_EPILOG && !m->mild)
        m->teardown = 1;
    m->mild = 0;
}

void model_run_call (struct model *m, int kind)
{
    switch (kind) {
        case DWS_ACT_RESOURCE_UPDATE:
            if (m->phase > DWS_PHASE_PENDING)
                break;
            if (m->want_first != DWS_FIRST_UNSAID
                && (m->data_first != DWS_FIRST_NO))
                m->data_first = m->want_first;
            m->phase = DWS_PHASE_PENDING;
            break;
        case DWS_ACT_REJECT:
        case DWS_ACT_RAISE:
            raise_exception (m);
            break;
        case DWS_ACT_HOSTS:
            m->hosts = 1;
            break;
        case DWS_ACT_RECALL:
            m->recalled = 1;
            m->abandoned |= m->late;
            m->released |= m->let_go || m->alone;
            m->stranded |= m->alone;
            m->ran |= m->alone;
            break;
        case DWS_ACT_PROLOG_REMOVE:
            if (m->phase == DWS_PHASE_PROLOG)
                m->phase = DWS_PHASE_RUNNING;
            break;
        case DWS_ACT_EPILOG_REMOVE:
            if (m->phase == DWS_PHASE_EPILOG) {
                m->phase = DWS_PHASE_GONE;
                m->let_go = !m->late;
            }
            m->released = 1;
            break;
        case DWS_ACT_UNDRAIN:
            if (m->abandoned && !model_secured (m))
                break;
            m->undrained = 1;
            m->maybe = 0;
            break;
        case DWS_ACT_REPORT:
            if (m->recording == RECORD_NONE || m->recording == RECORD_LOST)
                m->reported = 1;
            else
                m->recorded = m->current_record;
            m->listed = m->keeps && m->recording != RECORD_GOOD;
            break;
        default:
            break;
    }
}

/* 'lagging': how many hosts a list of mounts or allocations shows, or whether
 * data has moved on.
 */
void model_run_side (struct model *m, int kind, int lagging)
{
    bool current = !(get_mask (m->stale) & BIT (kind)) && m->seen.exists;

    set_mask (m->stale, get_mask (m->stale) & ~BIT (kind));
    if (kind == DWS_ACT_MOUNTS || kind == DWS_ACT_ALLOCATIONS) {
        bool missing = m->phase <= DWS_PHASE_PROLOG
                       && m->seen.desired <= DWS_STATE_PRERUN;
        if (current && kind == DWS_ACT_MOUNTS && missing != m->missing)
            set_lag (m, 0);
        if (current && (kind == DWS_ACT_MOUNTS
                        || m->seen.state == DWS_STATE_SETUP))
            set_lag (m, lagging + 1);
        if (current && kind == DWS_ACT_MOUNTS)
            m->missing = missing;
        if (current && kind == DWS_ACT_MOUNTS)
            m->only_waived = m->seen.waived && m->seen.state > DWS_STATE_PRERUN
                             && lagging <= m->tolerance;
        if (current && kind == DWS_ACT_ALLOCATIONS)
            m->allocated = 1;
        return;
    }
    if (kind == DWS_ACT_PROGRESS) {
        if (current)
            m->progress = lagging > 0 ? PROGRESS_MADE : PROGRESS_NONE;
        return;
    }
    if (!m->real.exists || !m->real.breakdowns)
        return;
    if (kind == DWS_ACT_SERVERS)
        m->real.servers = 1;
    if (kind == DWS_ACT_COMPUTES)
        m->real.computes = 1;
    if (kind == DWS_ACT_EXCLUDE) {
        m->left_out = 1;
        m->shrunk = m->real.waived;
    }
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

/* Whoever lays the storage out finds that rabbits are down: their nodes are to be
 * left out.
 */
void model_run_down (struct model *m)
{
    bool current = !(get_mask (m->stale) & BIT (DWS_ACT_SERVERS));

    set_mask (m->stale, get_mask (m->stale) & ~BIT (DWS_ACT_SERVERS));
    if (current && m->seen.exists && m->seen.state == DWS_STATE_PROPOSAL)
        set_lag (m, m->tolerance + 1);
}

bool model_accepts (const struct model_workflow *wf, int state)
{
    return wf->state != DWS_STATE_TEARDOWN
        && state == wf->state + 1 && wf->ready;
}

/* The first command in the queue reaches the API server.
 */
void model_run_command (struct model *m, int kind, struct model_check *check)
{
    struct model_workflow *wf = &m->real;

    if (kind == DWS_ACT_CREATE) {
        if (!wf->exists) {
            memset (wf, 0, sizeof (*wf));
            wf->exists = 1;
            wf->desired = DWS_STATE_PROPOSAL;
            wf->finalizer = 1;
            wf->data_first = m->make_first;
            m->same = 0;
        }
        return;
    }
    if (!wf->exists)
        return;
    if (kind == DWS_ACT_DESIRE && model_accepts (wf, m->want)) {
        if (m->want == DWS_STATE_SETUP && m->same
            && (!wf->servers || (!wf->computes && !wf->data_first)))
            model_fail (check, "Setup before Servers and Computes were written");
        if (m->want == DWS_STATE_PRERUN && m->same && wf->data_first
            && !wf->computes)
            model_fail (check, "PreRun before Computes was written");
        wf->desired = m->want;
    }
    else if (kind == DWS_ACT_TEARDOWN)
        wf->desired = DWS_STATE_TEARDOWN;
    else if (kind == DWS_ACT_KEEP)
        wf->failed = 1;
    else if (kind == DWS_ACT_RETRY) {
        if (wf->retry && wf->state == DWS_STATE_DATAOUT && !wf->ready)
            wf->status = DWS_STATUS_DRIVERWAIT;
        wf->retry = 0;
    }
    else if (kind == DWS_ACT_FINALIZER)
        wf->finalizer = 0;
    else if (kind == DWS_ACT_FORCE_READY) {
        wf->force = 1;
        if (wf->state == DWS_STATE_PRERUN) {
            wf->waived = 1;
            m->left_out = 1;
        }
    }
    else if (kind == DWS_ACT_DELETE)
        wf->deleting = 1;
    else if (kind == DWS_ACT_ADOPT)
        wf->hidden = 0;
}

int model_pop (struct model *m)
{
    int kind = m->queue[0] - 1;

    memmove (m->queue, m->queue + 1, MODEL_QUEUE - 1);
    m->queue[MODEL_QUEUE - 1] = 0;
    set_busy (m, get_busy (m) & ~BIT (kind));
    return kind;
}

/* The world
 */

void model_restart_agent (struct model *m)
{
    if (is_busy (m, DWS_ACT_CREATE))
        m->absent = 0;
    memset (m->queue, 0, sizeof (m->queue));
    set_busy (m, get_busy (m) & CALLS);
    m->want = 0;
    m->make_first = 0;
    set_mask (m->stale, 0);
    model_list (m);
}

void model_restart_module (struct model *m)
{
    memset (m->queue, 0, sizeof (m->queue));
    memset (&m->seen, 0, sizeof (m->seen));
    set_busy (m, 0);
    m->want = 0;
    set_mask (m->stale, 0);
    m->known = m->phase != DWS_PHASE_GONE;
    m->absent = !m->known;
    m->abandoned = m->phase == DWS_PHASE_EPILOG && m->late;
    m->no_room = 0;
    m->remade = 0;
    m->contended = 0;
    m->want_first = 0;
    m->make_first = 0;
    m->raised = 0;
    m->refusal = 0;
    m->hosts = 0;
    m->saved = 0;
    m->same = 0;
    m->recalled = 0;
    m->released = 0;
    m->stranded = 0;
    m->kept = 0;
    m->undrained = 0;
    m->reported = 0;
    m->recorded = 0;
    m->recording = 0;
    m->current_record = 0;
    m->mild = 0;
    m->progress = PROGRESS_UNREAD;
    m->looked = !model_loses (m);
    m->touched = !model_loses (m);
    m->spoilt = 0;
    m->allocated = 0;
    m->disabled = 0;
    m->barred = 0;
    set_lag (m, 0);
    if (!m->known) {
        m->ran = 0;
        m->exception = 0;
        m->teardown = 0;
    }
    model_list (m);
}

void model_remove_real (struct model *m)
{
    memset (&m->real, 0, sizeof (m->real));
    m->same = 0;
    m->lost = 0;
    m->left_out = 0;
    m->shrunk = 0;
}

/* Nothing is mounted or unmounted without it.
 */
static bool needs_computes (const struct model_workflow *wf)
{
    return wf->state == DWS_STATE_PRERUN || wf->state == DWS_STATE_POSTRUN
        || (wf->state == DWS_STATE_TEARDOWN && !wf->ready)
        || (wf->state == DWS_STATE_DATAOUT && wf->deleting);
}

/* The DWS controllers. 'world' says what they do not manage.
 */
bool model_control (struct model *m, enum model_world world)
{
    struct model_workflow *wf = &m->real;

    if (!wf->exists)
        return false;
    if (wf->deleting) {
        if (wf->finalizer || (m->lost && needs_computes (wf)))
            return false;
        model_remove_real (m);
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
    if (m->lost && needs_computes (wf))
        return false;
    if (wf->waived && wf->state == DWS_STATE_POSTRUN && !m->shrunk)
        return false;
    if (world == WORLD_STUCK
        && (model_has_timeout (wf->state)
            || (m->patient && wf->state == DWS_STATE_DATAIN)))
        return false;
    if (world == WORLD_MOVING && m->patient
        && wf->state == DWS_STATE_DATAIN && m->progress != PROGRESS_MADE)
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

    if (!m->real.exists || m->real.hidden)
        return seen.exists && !seen.hidden && !seen.doubted;
    if (!seen.exists)
        return true;
    seen.breakdowns = m->real.breakdowns;
    seen.servers = m->real.servers;
    seen.computes = m->real.computes;
    return !m->same || memcmp (&seen, &m->real, sizeof (seen)) != 0;
}

bool model_settle (struct model *m, enum model_world world,
                   struct model_check *check)
{
    uint64_t calls = get_busy (m) & (CALLS | SIDE);

    if (m->queue[0]) {
        model_run_command (m, model_pop (m), check);
        model_read (m);
    }
    else if (is_behind (m))
        model_learn (m);
    else if (calls) {
        int kind = __builtin_ctzll (calls);
        set_busy (m, get_busy (m) & ~BIT (kind));
        if (SIDE & BIT (kind))
            model_run_side (m, kind, kind != DWS_ACT_PROGRESS
                                     || world == WORLD_MOVING);
        else
            model_run_call (m, kind);
    }
    else if (model_control (m, world))
        model_learn (m);
    else if (m->disabled && !m->barred)
        m->barred = 1;
    else if (m->exception && m->phase < DWS_PHASE_EPILOG)
        model_end_phase (m);
    else if (m->phase == DWS_PHASE_PENDING) {
        m->phase = DWS_PHASE_PROLOG;
        m->hosts = 1;
    }
    else if (m->phase == DWS_PHASE_RUNNING)
        model_end_phase (m);
    else if (m->phase == DWS_PHASE_EPILOG && m->abandoned
             && model_secured (m))
        model_abandon (m, check);
    else
        return model_decide (m, EARLY, check)
            || model_decide (m, SOON, check)
            || model_decide (m, LATE, check)
            || model_decide (m, LATER, check);
    model_decide (m, EARLY, check);
    return true;
}

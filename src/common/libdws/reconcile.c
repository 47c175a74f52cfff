/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See reconcile.h. The table near the end is the whole course of a job; above
 * it is one small function for each kind of row. The first row that fits
 * applies; where none does there is nothing to do but wait.
 */

#include <errno.h>
#include <string.h>

#include "reconcile_private.h"
#include "view.h"

/* Where the job is, as the table sees it. It is finer than enum dws_phase:
 * an exception or a timeout changes what has to be done.
 */
enum {
    DEPEND = 1 << 0,
    PENDING = 1 << 1,
    PROLOG = 1 << 2,
    DYING = 1 << 3,     // one of the above, but with an exception
    RUNNING = 1 << 4,
    EPILOG = 1 << 5,    // ran: unmount and move data before Teardown
    CLEANUP = 1 << 6,   // epilog, with nothing left to do but Teardown
    GONE = 1 << 7,      // inactive, or never heard of
    ABANDONED = 1 << 8, // let go by the epilog timeout
    LOST = 1 << 9,      // gone, and it is not known how
    UNMOUNTED = 1 << 10,        // epilog: it ends here by release_nodes
    RELEASED = 1 << 11, // gone, and its epilog has ended: data may still move
};

/* Where the workflow is going, by desiredState.
 */
enum {
    UNSET = 1 << DWS_STATE_NONE,
    PROPOSAL = 1 << DWS_STATE_PROPOSAL,
    SETUP = 1 << DWS_STATE_SETUP,
    DATAIN = 1 << DWS_STATE_DATAIN,
    PRERUN = 1 << DWS_STATE_PRERUN,
    POSTRUN = 1 << DWS_STATE_POSTRUN,
    DATAOUT = 1 << DWS_STATE_DATAOUT,
    TEARDOWN = 1 << DWS_STATE_TEARDOWN,
    LIVE = UNSET | PROPOSAL | SETUP | DATAIN | PRERUN | POSTRUN | DATAOUT,
    NOWHERE = 1 << 8,   // there is no workflow
};

/* How it fares there.
 */
enum {
    BUSY = 1 << 0,
    READY = 1 << 1,
    TRANSIENT = 1 << 2,
    ERROR = 1 << 3,
    DELETING = 1 << 4,
    ABSENT = 1 << 5,
    UNREADY = BUSY | TRANSIENT,
    ANY = BUSY | READY | TRANSIENT | ERROR | DELETING,
};

/* The way to the job's start
 */

static void create (struct view *v)
{
    wait_for (v, "the workflow to be created");
    if (v->job->refusal)
        fail (v, NULL, "%s", v->job->refusal);
    else
        act (v, DWS_ACT_CREATE);
}

static bool have_breakdowns (struct view *v)
{
    if (v->wf->breakdowns || v->wf->breakdown_count == 0)
        return true;
    wait_for (v, "the directive breakdowns");
    act (v, DWS_ACT_BREAKDOWNS);
    return false;
}

static void offer (struct view *v)
{
    if (v->job->refusal) {
        fail (v, NULL, "%s", v->job->refusal);
        return;
    }
    save_timing (v);
    if (!have_breakdowns (v))
        return;
    wait_for (v, "the job's resources to be updated");
    act (v, DWS_ACT_RESOURCE_UPDATE);
}

static void place (struct view *v)
{
    bool complete;

    if (v->job->refusal) {
        fail (v, NULL, "%s", v->job->refusal);
        return;
    }
    complete = have_breakdowns (v);
    if (!v->job->hosts) {
        wait_for (v, "the resource set");
        act (v, DWS_ACT_HOSTS);
        complete = false;
    }
    if (!v->wf->computes) {
        wait_for (v, "the Computes object");
        complete = false;
    }
    if (!complete)
        return;
    if (v->wf->servers_written && v->wf->computes_written) {
        desire (v, DWS_STATE_SETUP);
        return;
    }
    wait_for (v, "the servers and computes to be written");
    if (!v->wf->servers_written)
        act (v, DWS_ACT_SERVERS);
    if (!v->wf->computes_written)
        act (v, DWS_ACT_COMPUTES);
}

static void next (struct view *v)
{
    save_timing (v);
    desire (v, v->wf->desired + 1);
}

static void release_prolog (struct view *v)
{
    wait_for (v, "the prolog to be released");
    save_timing (v);
    act (v, DWS_ACT_PROLOG_REMOVE);
}

/* What lags in this state has been read. Asks for it otherwise.
 */
static bool have_lagging (struct view *v)
{
    if (v->wf->lag_state == v->wf->state)
        return true;
    wait_for (v, "a list of the nodes that lag behind");
    act (v, v->wf->state == DWS_STATE_SETUP ? DWS_ACT_ALLOCATIONS
                                            : DWS_ACT_MOUNTS);
    return false;
}

/* The state takes too long. If the job can do without the nodes that are to
 * blame, go on without them. Returns false if it has to fail.
 */
static bool go_on_without (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    /* In a state that DWS has not taken up nothing lags, and a forceReady
     * would be lost. */
    if (v->job->failure_tolerance <= 0 || wf->state != wf->desired)
        return false;
    if (wf->force_ready) {
        wait_for (v, "the workflow to go on without the nodes that failed");
        return true;
    }
    if (!have_lagging (v))
        return true;
    if (wf->lagging_count == 0
        || wf->lagging_count > (size_t)v->job->failure_tolerance
        || (wf->shared && wf->state == DWS_STATE_SETUP))
        return false;
    wait_for (v, "the nodes that failed to be left out");
    if (!wf->excluded)
        act (v, DWS_ACT_EXCLUDE);
    else if (act (v, DWS_ACT_FORCE_READY) && !wf->drained) {
        act (v, DWS_ACT_NOTIFY);
        act (v, DWS_ACT_DRAIN);
    }
    return true;
}

static void set_up (struct view *v)
{
    wait_for (v, "the file systems to be created");
    if (expired (v, v->wf->t_desired, v->policy->setup_timeout)
        && !go_on_without (v))
        fail (v, "dws-timeout", "creating file systems took longer than %gs",
              v->policy->setup_timeout);
}

static void mount (struct view *v)
{
    wait_for (v, "the file systems to be mounted");
    if (expired (v, v->wf->t_desired, v->policy->prerun_timeout)
        && !go_on_without (v))
        fail (v, "dws-timeout", "mounting file systems took longer than %gs",
              v->policy->prerun_timeout);
}

/* Trouble
 */

/* Teardown deletes movements and containers.
 */
static bool have_movements (struct view *v)
{
    bool logs = v->wf->containers && v->policy->container_log_bytes > 0;

    if ((v->policy->save_datamovements <= 0 && !logs)
        || v->wf->state < DWS_STATE_DATAIN
        || v->wf->movements)
        return true;
    wait_for (v, "a record of data movements and containers");
    act (v, DWS_ACT_MOVEMENTS);
    return false;
}

/* Teardown is what destroys a persistent file system. A job that has not run
 * is not to destroy any: its workflow is just deleted.
 */
static bool spares (struct view *v)
{
    return v->wf->destroys && !v->job->run_started
        && v->wf->desired < DWS_STATE_POSTRUN;
}

static void tear_down (struct view *v)
{
    wait_for (v, "the workflow to be torn down");
    if (spares (v)) {
        act (v, DWS_ACT_DELETE);
        return;
    }
    /* What is lost has to be on record before it is lost. */
    if (under_way (v, DWS_ACT_REPORT) || asks_for (v, DWS_ACT_REPORT))
        return;
    /* An orphan's job has no KVS directory that is known to be its own. */
    if (v->job->directives || v->job->released) {
        if (!have_movements (v))
            return;
        save_last (v);
    }
    act (v, DWS_ACT_TEARDOWN);
}

/* A transient condition does not stop the clock of the state itself.
 */
static void transient (struct view *v)
{
    bool mounting = v->wf->state == DWS_STATE_PRERUN;

    if (v->wf->state == DWS_STATE_SETUP)
        set_up (v);
    else if (mounting)
        mount (v);
    if (v->out->count > 0)
        return;
    wait_for (v, v->wf->message);
    if (transient_expired (v) && !(mounting && go_on_without (v)))
        fail_transient (v);
}

static void start_over (struct view *v)
{
    wait_for (v, "a workflow that cannot be used to be torn down");
    act (v, spares (v) ? DWS_ACT_DELETE : DWS_ACT_TEARDOWN);
}

static void let_go (struct view *v)
{
    wait_for (v, "the workflow to be deleted");
    drop_finalizer (v);
}

/* From the job's end on
 */

static void release_epilog (struct view *v)
{
    wait_for (v, "the epilog to be released");
    act (v, DWS_ACT_EPILOG_REMOVE);
}

/* The mounts that are still there when unmounting is given up are on nodes
 * that cannot be used.
 */
static void give_up_unmounting (struct view *v)
{
    if (!have_lagging (v))
        return;
    fail (v, "dws-timeout", "unmounting took longer than %gs, "
          "skipping data movement", v->policy->postrun_timeout);
    if (v->wf->lagging_count > 0 && !v->wf->drained)
        act (v, DWS_ACT_DRAIN);
    tear_down (v);
}

/* A time limit has passed. Is data on the move, and has it got further than
 * when it was last looked at, a tenth of the grace ago? When the grace ends
 * does not depend on that, and not on who looks.
 */
static bool data_moves (struct view *v, double limit)
{
    const struct dws_workflow *wf = v->wf;
    double grace = v->policy->datamovement_grace;

    if (grace <= 0. || expired (v, limit, grace))
        return false;
    if (wf->t_progress <= 0. || expired (v, wf->t_progress, grace / 10.)) {
        wait_for (v, "the progress of the data movement");
        act (v, DWS_ACT_PROGRESS);
        return true;
    }
    if (wf->advancing)
        wait_for (v, "data that is on the move still");
    return wf->advancing;
}

static void unmount (struct view *v)
{
    const struct dws_policy *policy = v->policy;
    bool unmounting = v->wf->desired == DWS_STATE_POSTRUN;
    const char *what = unmounting ? "unmounting" : "data movement";
    bool mounts_late = unmounting
        && expired (v, v->wf->t_desired, policy->postrun_timeout);
    bool late = !mounts_late
        && expired (v, v->job->t_epilog, policy->teardown_after);

    wait_for (v, unmounting ? "the file systems to be unmounted" : what);
    if ((mounts_late || late) && !transient_expired (v)
        && data_moves (v, mounts_late
                          ? v->wf->t_desired + policy->postrun_timeout
                          : v->job->t_epilog + policy->teardown_after))
        return;
    if (mounts_late) {
        give_up_unmounting (v);
        return;
    }
    if (late)
        fail (v, "dws-timeout", "%s took longer than %gs, skipping it",
              what, policy->teardown_after);
    else if (transient_expired (v))
        fail_transient (v);
    else
        return;
    tear_down (v);
}

static void give_up (struct view *v)
{
    fail_message (v);
    tear_down (v);
}

/* Somebody deletes it, before all data was moved.
 */
static void lose (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    if (v->job->reported || (wf->state == DWS_STATE_DATAOUT && wf->ready))
        let_go (v);
    else
        fail (v, NULL, "the workflow was deleted in %s",
              dws_state_name (wf->state));
}

static void begin_teardown (struct view *v)
{
    wait_for (v, "the workflow to be torn down");
    if (v->wf->state == DWS_STATE_TEARDOWN || v->wf->deleting)
        drop_finalizer (v);
}

/* It goes on trying. Only a file system that others use is left to it: no node
 * has to wait for those.
 */
static void fail_teardown (struct view *v)
{
    begin_teardown (v);
    fail_message (v);
    if (v->wf->destroys && v->job->raised)
        act (v, DWS_ACT_EPILOG_REMOVE);
}

static void remove_workflow (struct view *v)
{
    wait_for (v, "the workflow to be deleted");
    drop_finalizer (v);
    if (!v->wf->deleting)
        act (v, DWS_ACT_DELETE);
}

static void finish (struct view *v)
{
    remove_workflow (v);
    save_timing (v);
}

static void end (struct view *v)
{
    finish (v);
    /* Let the job go when its timings can be read. */
    if ((v->job->saved & DWS_SAVED (DWS_STATE_TEARDOWN))
        && !under_way (v, DWS_ACT_SAVE))
        release_epilog (v);
}

/* What is to be done about the workflow of a job that is gone depends on how
 * the job has ended, which this process may not have seen.
 */
static void recall (struct view *v)
{
    wait_for (v, "the eventlog of a job that is gone");
    act (v, DWS_ACT_RECALL);
}

/* Nothing is lost with a workflow whose data has been moved. Of any other the
 * job may turn up.
 */
static void orphan (struct view *v)
{
    const struct dws_workflow *wf = v->wf;
    bool moved = wf->desired == DWS_STATE_DATAOUT && wf->state == wf->desired
                 && wf->ready;

    if (!moved && !expired (v, v->job->t_gone, v->policy->orphan_grace)) {
        wait_for (v, "the job of an orphan workflow to turn up");
        return;
    }
    tear_down (v);
}

/* The epilog timeout has let the job go. Its nodes and rabbits go to other
 * jobs now, so take those away that are not clean.
 */
static void quarantine (struct view *v)
{
    const struct dws_workflow *wf = v->wf;

    if (wf->state >= DWS_STATE_PRERUN
        && have_lagging (v) && wf->lagging_count > 0 && !wf->drained)
        act (v, DWS_ACT_DRAIN);
    if (!wf->allocated)
        act (v, DWS_ACT_ALLOCATIONS);
    else if (*wf->allocated && !wf->disabled)
        act (v, DWS_ACT_DISABLE);
}

static void abandon (struct view *v)
{
    quarantine (v);
    if (v->wf->deleting)
        let_go (v);
    else if (v->wf->desired == DWS_STATE_TEARDOWN)
        begin_teardown (v);
    else
        tear_down (v);
}

#define BEFORE (DEPEND | PENDING | PROLOG)

struct row {
    unsigned int places;
    unsigned int states;
    unsigned int conditions;
    void (*fn)(struct view *v);
    const char *name;
};

#define ROW(places, states, conditions, fn) \
    { places, states, conditions, fn, #places " " #states " " #conditions }

static const struct row table[] = {
    /*   job is in         workflow goes to    and is     do */
    ROW (BEFORE,           NOWHERE,            ABSENT,    create),
    ROW (BEFORE,           LIVE,               DELETING,  let_go),
    ROW (BEFORE,           LIVE,               ERROR,     fail_message),
    ROW (BEFORE,           TEARDOWN,           READY,     remove_workflow),
    ROW (BEFORE,           TEARDOWN,           ANY,       begin_teardown),
    ROW (DEPEND,           PROPOSAL,           READY,     offer),
    ROW (PROLOG,           PROPOSAL,           READY,     place),
    ROW (PROLOG,           SETUP,              BUSY,      set_up),
    ROW (PROLOG,           SETUP | DATAIN,     READY,     next),
    ROW (PROLOG,           PRERUN,             BUSY,      mount),
    ROW (PROLOG,           PRERUN,             READY,     release_prolog),
    ROW (PROLOG,           POSTRUN | DATAOUT,  ANY,       start_over),
    ROW (DEPEND | PENDING, LIVE - PROPOSAL - UNSET, ANY,  start_over),
    ROW (BEFORE,           LIVE,               TRANSIENT, transient),

    ROW (RUNNING,          LIVE,               ERROR,     fail_message),

    ROW (EPILOG | CLEANUP, NOWHERE,            ABSENT,    release_epilog),
    ROW (UNMOUNTED,        POSTRUN | DATAOUT,  ANY,       release_epilog),
    ROW (RELEASED,         POSTRUN | DATAOUT,  DELETING,  lose),
    ROW (EPILOG | CLEANUP | GONE | RELEASED, LIVE, DELETING, let_go),
    ROW (EPILOG | CLEANUP, TEARDOWN,           READY,     end),
    ROW (EPILOG | CLEANUP, TEARDOWN,           ERROR,     fail_teardown),
    ROW (EPILOG | CLEANUP | GONE | RELEASED, TEARDOWN, ANY - READY,
         begin_teardown),
    ROW (EPILOG,           LIVE,               ERROR,     give_up),
    ROW (RELEASED,         POSTRUN | DATAOUT,  ERROR,     give_up),
    ROW (EPILOG,           PRERUN,             READY,     next),
    ROW (EPILOG | RELEASED, POSTRUN,           READY,     next),
    ROW (EPILOG,           POSTRUN,            UNREADY,   unmount),
    ROW (EPILOG | RELEASED, DATAOUT,           UNREADY,   unmount),
    ROW (EPILOG | CLEANUP, LIVE,               ANY,       tear_down),

    ROW (LOST | GONE | ABANDONED, TEARDOWN,    READY,     remove_workflow),
    ROW (RELEASED,         TEARDOWN,           READY,     finish),
    ROW (LOST,             LIVE | TEARDOWN,    ANY,       recall),
    ROW (GONE | RELEASED,  LIVE,               ANY,       orphan),
    ROW (ABANDONED,        LIVE | TEARDOWN,    ANY,       abandon),
};

#define ROWS (sizeof (table) / sizeof (table[0]))

/* 'ready' and 'status' belong to status.state: they say nothing about a
 * desired state that DWS has not taken up yet.
 */
static unsigned int view_condition (const struct dws_workflow *wf)
{
    bool arrived = wf->state == wf->desired && wf->state != DWS_STATE_NONE;

    if (!arrived)
        return wf->deleting ? DELETING : BUSY;
    if (wf->ready && wf->desired == DWS_STATE_TEARDOWN)
        return READY;
    if (wf->deleting)
        return DELETING;
    if (wf->status == DWS_STATUS_ERROR)
        return ERROR;
    if (wf->ready)
        return READY;
    return wf->status == DWS_STATUS_TRANSIENT ? TRANSIENT : BUSY;
}

/* What comes after PostRun is then not decided before the job is let go.
 */
static bool is_unmounted (const struct dws_workflow *wf,
                          const struct dws_policy *policy)
{
    return policy->release_nodes == DWS_RELEASE_UNMOUNT && wf
        && (wf->desired == DWS_STATE_DATAOUT
            || (wf->desired == DWS_STATE_POSTRUN
                && view_condition (wf) == READY));
}

static unsigned int view_place (const struct dws_job *job,
                                const struct dws_workflow *wf,
                                const struct dws_policy *policy)
{
    if (job->abandoned)
        return ABANDONED;
    if (job->phase == DWS_PHASE_GONE) {
        if (job->released)
            return RELEASED;
        return job->recalled ? GONE : LOST;
    }
    if (job->phase == DWS_PHASE_EPILOG) {
        if (!job->run_started || job->teardown)
            return CLEANUP;
        return is_unmounted (wf, policy) ? UNMOUNTED : EPILOG;
    }
    if (job->phase == DWS_PHASE_RUNNING)
        return RUNNING;
    if (job->exception)
        return DYING;
    if (job->phase == DWS_PHASE_PROLOG)
        return PROLOG;
    return job->phase == DWS_PHASE_PENDING ? PENDING : DEPEND;
}

static const char *idle_reason (unsigned int place)
{
    switch (place) {
        case PENDING:
            return "the job to be allocated resources";
        case DYING:
            return "the job to end after an exception";
        case RUNNING:
            return "the job to end";
        default:
            return "the workflow";
    }
}

size_t reconcile_rows (void)
{
    return ROWS;
}

const char *reconcile_row_name (size_t row)
{
    return row < ROWS ? table[row].name : "";
}

int reconcile_without (int skip,
                       const struct dws_job *job,
                       const struct dws_workflow *wf,
                       const struct dws_policy *policy,
                       double now,
                       struct dws_actions *out,
                       int *applied)
{
    struct view v = { job, wf, policy, now, out };
    unsigned int place;
    unsigned int state = NOWHERE;
    unsigned int condition = ABSENT;

    if (!job || !policy || !out) {
        errno = EINVAL;
        return -1;
    }
    memset (out, 0, sizeof (*out));
    if (applied)
        *applied = -1;
    place = view_place (job, wf, policy);
    if (wf) {
        state = 1U << wf->desired;
        condition = view_condition (wf);
    }
    wait_for (&v, idle_reason (place));
    for (size_t i = 0; i < ROWS; i++) {
        if ((int)i != skip
            && (table[i].places & place)
            && (table[i].states & state)
            && (table[i].conditions & condition)) {
            table[i].fn (&v);
            if (applied)
                *applied = i;
            break;
        }
    }
    return 0;
}

int dws_reconcile (const struct dws_job *job,
                   const struct dws_workflow *wf,
                   const struct dws_policy *policy,
                   double now,
                   struct dws_actions *out)
{
    return reconcile_without (-1, job, wf, policy, now, out, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See reconcile.h. The table is the whole course of a job; what its rows do is
 * in rows.c. The first row that fits applies; where none does there is nothing
 * to do but wait.
 */

#include <errno.h>
#include <string.h>

#include "reconcile_private.h"
#include "rows_private.h"
#include "row_helpers_private.h"

/* The position of the job in the table. The phases of enum dws_phase are too
 * coarse: an exception or a timeout changes what has to be done.
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
    STRANDED = 1 << 12, // gone without an epilog: mounted, or not known to be not
    FIRST = 1 << 13,    // depend: it gets its data before it has nodes
    STAGED = 1 << 14,   // pending: for nodes next to its data
    BACK = 1 << 15,     // pending or prolog: what it was given first is given back
    UNSTAGED = 1 << 16,   // pending for nodes next to data that is not there any more
    SPOILT = 1 << 17,   // before it runs: Servers or Computes are lost
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
    ANOTHERS = 1 << 9,  // live, and made for another job that had this id
};

/* How the workflow fares in its state.
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
    DOUBT = 1 << 6,     // whether it exists is not known
};

#define DEPENDING (DEPEND | FIRST)
#define QUEUED (PENDING | STAGED | UNSTAGED)
#define BEFORE (DEPENDING | QUEUED | BACK | SPOILT | PROLOG)
#define ANYWHERE (~0U)

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
    ROW (ANYWHERE,         ANYWHERE,           DOUBT,     row_look),
    ROW (BEFORE,           NOWHERE,            ABSENT,    row_create),
    ROW (BEFORE,           LIVE | ANOTHERS,    DELETING,  row_let_go),
    ROW (DEPENDING,        ANOTHERS,           ANY,       row_replace),
    ROW (SPOILT,           LIVE | ANOTHERS,    ANY,       row_replace),
    ROW (BEFORE,           SETUP,              ERROR,     row_fail_setup),
    ROW (BEFORE,           LIVE,               ERROR,     fail_message),
    ROW (BEFORE,           TEARDOWN,           READY,     row_remove_workflow),
    ROW (BEFORE,           TEARDOWN,           ANY,       row_begin_teardown),
    ROW (BACK,             LIVE,               ANY,       row_start_over),
    ROW (DEPEND,           PROPOSAL,           READY,     row_offer),
    ROW (FIRST,            PROPOSAL,           READY,     row_reserve),
    ROW (FIRST | PROLOG,   SETUP,              BUSY,      row_set_up),
    ROW (FIRST | PROLOG,   SETUP,              READY,     row_next),
    ROW (FIRST,            DATAIN,             READY,     row_offer_staged),
    ROW (STAGED,           DATAIN,             READY,     row_keep_staged),
    ROW (STAGED | UNSTAGED,  PROPOSAL,           READY,     row_unstage),
    ROW (PROLOG,           PROPOSAL,           READY,     row_place),
    ROW (PROLOG,           DATAIN,             READY,     row_next),
    ROW (PROLOG,           PRERUN,             BUSY,      row_mount),
    ROW (PROLOG,           PRERUN,             READY,     row_release_prolog),
    ROW (PROLOG,           POSTRUN | DATAOUT,  ANY,       row_start_over),
    ROW (DEPEND | PENDING | UNSTAGED, LIVE - PROPOSAL - UNSET, ANY, row_start_over),
    ROW (FIRST | STAGED,   PRERUN | POSTRUN | DATAOUT, ANY, row_start_over),
    ROW (BEFORE,           LIVE,               TRANSIENT, row_transient),

    ROW (RUNNING,          LIVE,               ERROR,     fail_message),
    ROW (RUNNING,          LIVE,               TRANSIENT, row_transient_run),

    ROW (EPILOG | CLEANUP, NOWHERE,            ABSENT,    row_release_epilog),
    ROW (UNMOUNTED,        POSTRUN | DATAOUT,  ANY,       row_release_epilog),
    ROW (RELEASED,         POSTRUN | DATAOUT,  DELETING,  row_lose),
    ROW (EPILOG | CLEANUP | GONE | RELEASED, LIVE, DELETING, row_let_go),
    ROW (EPILOG | CLEANUP, TEARDOWN,           READY,     row_end),
    ROW (EPILOG | CLEANUP, TEARDOWN,           ERROR,     row_fail_teardown),
    ROW (EPILOG | CLEANUP | GONE | RELEASED | STRANDED, TEARDOWN, ANY - READY,
         row_begin_teardown),
    ROW (EPILOG,           LIVE,               ERROR,     row_give_up),
    ROW (RELEASED,         POSTRUN | DATAOUT,  ERROR,     row_give_up),
    ROW (EPILOG,           PRERUN,             READY,     row_next),
    ROW (EPILOG | RELEASED, POSTRUN,           READY,     row_next),
    ROW (EPILOG,           POSTRUN,            UNREADY,   row_unmount),
    ROW (EPILOG | RELEASED, DATAOUT,           UNREADY,   row_unmount),
    ROW (STRANDED,         PRERUN | POSTRUN,   DELETING,  row_lose),
    ROW (STRANDED,         PRERUN | POSTRUN,   ERROR,     row_fetch_fail),
    ROW (STRANDED,         PRERUN,             READY,     row_fetch),
    ROW (STRANDED,         POSTRUN,            UNREADY,   row_fetch_unmount),
    ROW (STRANDED,         POSTRUN,            READY,     row_undrain),
    ROW (STRANDED,         DATAOUT,            ANY,       row_undrain),
    ROW (STRANDED,         TEARDOWN,           READY,     row_undrain),
    ROW (EPILOG | CLEANUP | STRANDED, LIVE,    ANY,       row_tear_down),

    ROW (GONE,             TEARDOWN,           READY,     row_remove_workflow),
    ROW (ABANDONED,        TEARDOWN,           READY,     row_end_abandoned),
    ROW (RELEASED,         TEARDOWN,           READY,     row_finish),
    ROW (LOST,             LIVE | TEARDOWN,    ANY,       row_recall),
    ROW (GONE | RELEASED,  LIVE,               ANY,       row_orphan),
    ROW (ABANDONED,        LIVE | TEARDOWN,    ANY,       row_abandon),
};

#define ROWS (sizeof (table) / sizeof (table[0]))

/* 'ready' and 'status' belong to status.state: they say nothing about a
 * desired state that DWS has not taken up yet.
 */
static unsigned int find_condition (const struct dws_workflow *wf)
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

/* Flux reuses ids that it forgot in a crash, and a forgotten job may have left a
 * workflow. The new job, in DEPEND, has not used that workflow yet.
 */
static bool is_anothers (const struct dws_job *job,
                         const struct dws_workflow *wf)
{
    return job->phase == DWS_PHASE_DEPEND && !wf->made
        && wf->desired < DWS_STATE_TEARDOWN
        && (wf->userid != (int64_t)job->userid
            || wf->directives_hash != job->directives_hash);
}

/* Does release_nodes end the epilog now? DataOut and Teardown follow after the job.
 */
static bool is_unmounted (const struct dws_workflow *wf,
                          const struct dws_policy *policy)
{
    return policy->release_nodes == DWS_RELEASE_UNMOUNT && wf
        && (wf->desired == DWS_STATE_DATAOUT
            || (wf->desired == DWS_STATE_POSTRUN
                && find_condition (wf) == READY));
}

/* The job has no exception, and does not run yet.
 */
static unsigned int find_early_place (const struct dws_job *job,
                                      const struct dws_workflow *wf)
{
    bool first = dws_is_data_first (job, wf);

    if (wf && wf->spoilt)
        return SPOILT;
    if (job->phase == DWS_PHASE_DEPEND)
        return first ? FIRST : DEPEND;
    if (wf && wf->data_first && !first)
        return BACK;
    if (job->phase == DWS_PHASE_PROLOG)
        return PROLOG;
    if (first)
        return STAGED;
    return wf && job->data_first == DWS_FIRST_YES ? UNSTAGED : PENDING;
}

static unsigned int find_place (const struct dws_job *job,
                                const struct dws_workflow *wf,
                                const struct dws_policy *policy)
{
    if (job->abandoned)
        return ABANDONED;
    if (job->phase == DWS_PHASE_GONE) {
        if (job->stranded && wf && !wf->undrained
            && wf->desired >= DWS_STATE_PRERUN)
            return STRANDED;
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
    return find_early_place (job, wf);
}

static const char *idle_reason (unsigned int place)
{
    switch (place) {
        case PENDING:
        case STAGED:
        case UNSTAGED:
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
                       struct dws_actions *out)
{
    struct view v = { job, wf, policy, now, out };
    unsigned int place;
    unsigned int state = NOWHERE;
    unsigned int condition = DOUBT;

    if (!job || !policy || !out) {
        errno = EINVAL;
        return -1;
    }
    // Not all of it, which is some kilobytes: append_action () clears what is used.
    out->count = 0;
    out->wake = 0.;
    out->reason = NULL;
    if (wf && wf->stray) {
        adopt (&v);
        return 0;
    }
    place = find_place (job, wf, policy);
    if (wf) {
        state = is_anothers (job, wf) ? ANOTHERS : 1U << wf->desired;
        condition = wf->doubted ? DOUBT : find_condition (wf);
    }
    else if (job->absent)
        condition = ABSENT;
    wait_for (&v, idle_reason (place));
    if ((place & (PROLOG | BACK | SPOILT)) && prolog_overdue (&v))
        return 0;
    for (size_t i = 0; i < ROWS; i++) {
        if ((int)i != skip
            && (table[i].places & place)
            && (table[i].states & state)
            && (table[i].conditions & condition)) {
            table[i].fn (&v);
            break;
        }
    }
    keep_label (&v);
    return 0;
}

int dws_reconcile (const struct dws_job *job,
                   const struct dws_workflow *wf,
                   const struct dws_policy *policy,
                   double now,
                   struct dws_actions *out)
{
    return reconcile_without (-1, job, wf, policy, now, out);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The decision: given the facts about a job and its workflow, what to do next.
 *
 * dws_reconcile() has no memory and does nothing itself. It may be called at
 * any time, any number of times: it never asks what has changed. The caller
 * carries the actions out and calls again when that has changed a fact.
 */

#ifndef LIBDWS_RECONCILE_H
#define LIBDWS_RECONCILE_H

#include "workflow.h"

/* What ends the epilog of a job that has run.
 */
enum dws_release {
    DWS_RELEASE_TEARDOWN,       // its workflow is torn down
    DWS_RELEASE_UNMOUNT,        // its file systems are unmounted: data is
                                //  moved and storage freed after the job
};

/* Times are in seconds, below zero means never.
 */
struct dws_policy {
    double tc_timeout;          // TransientCondition is tolerated this long
    double setup_timeout;
    double prerun_timeout;
    double postrun_timeout;
    double teardown_after;      // PostRun and DataOut together
    double datamovement_grace;  // more for those that move data meanwhile
    double orphan_grace;        // before an unknown workflow is torn down
    int save_datamovements;     // so many are recorded before Teardown
    int container_log_bytes;    // of each container, likewise
    int release_nodes;          // enum dws_release
};

#define DWS_POLICY_DEFAULT { \
    .tc_timeout = 10., \
    .setup_timeout = -1., \
    .prerun_timeout = -1., \
    .postrun_timeout = -1., \
    .teardown_after = -1., \
    .datamovement_grace = -1., \
    .orphan_grace = 10., \
}

/* An action that is under way has its bit (1 << kind) set in job->busy, and
 * is then not asked for again. The caller sets and clears the bits.
 */
enum dws_action_kind {
    DWS_ACT_CREATE,             // create the workflow in Proposal
    DWS_ACT_BREAKDOWNS,         // read the DirectiveBreakdowns
    DWS_ACT_RESOURCE_UPDATE,    // let the job into the queue
    DWS_ACT_REJECT,             // refuse the job in depend: text
    DWS_ACT_HOSTS,              // read R
    DWS_ACT_SERVERS,            // write the Servers objects
    DWS_ACT_COMPUTES,           // write the Computes object
    DWS_ACT_DESIRE,             // set desiredState: state
    DWS_ACT_TEARDOWN,           // set desiredState to Teardown
    DWS_ACT_PROLOG_REMOVE,      // let the job run
    DWS_ACT_EPILOG_REMOVE,      // let the job go
    DWS_ACT_RAISE,              // job exception: type, severity, text
    DWS_ACT_SAVE,               // to the KVS: timing of state, whole object;
                                //  then set 'bit' in job->saved
    DWS_ACT_MOUNTS,             // read which hosts lag behind
    DWS_ACT_ALLOCATIONS,        // read which rabbits do, or hold allocations
    DWS_ACT_EXCLUDE,            // write Computes without the hosts that lag
    DWS_ACT_FORCE_READY,        // go on without them
    DWS_ACT_NOTIFY,             // name them to the job: severity 1
    DWS_ACT_DRAIN,              // drain them
    DWS_ACT_DISABLE,            // disable rabbits that hold allocations
    DWS_ACT_MOVEMENTS,          // record data movements and container logs,
                                //  then set movements
    DWS_ACT_PROGRESS,           // read how far they have got
    DWS_ACT_RECALL,             // read the eventlog of a job that is gone
    DWS_ACT_REPORT,             // a job that was let go has lost data: text;
                                //  keep that, then set reported
    DWS_ACT_FINALIZER,          // take our finalizer off
    DWS_ACT_DELETE,             // delete the workflow
    DWS_ACT_COUNT,
};

#define DWS_BUSY(kind) (1U << (kind))

/* Bits in job->saved: the timing of a state, the object before Teardown.
 */
#define DWS_SAVED(state) (1U << (state))
#define DWS_SAVED_LAST (1U << 31)

struct dws_action {
    enum dws_action_kind kind;
    enum dws_state state;       // DESIRE: the new one, SAVE: the one done
    uint32_t bit;               // SAVE
    bool whole;                 // SAVE: the workflow object too
    int severity;               // RAISE
    const char *type;           // RAISE, a constant
    char text[512];             // RAISE, REJECT, REPORT
};

#define DWS_ACTIONS_MAX 8

struct dws_actions {
    struct dws_action list[DWS_ACTIONS_MAX];    // in the order to do them
    size_t count;
    double wake;                // call again at this time at the latest, or 0
    const char *reason;         // what is being waited for: a constant, or
                                //  the workflow's message. Never NULL
};

/* Compare and decide. 'wf' is NULL if the workflow does not exist (not: if
 * that is not known). 'out' is overwritten. Returns 0, or -1 with errno
 * EINVAL if an argument is NULL.
 */
int dws_reconcile (const struct dws_job *job,
                   const struct dws_workflow *wf,
                   const struct dws_policy *policy,
                   double now,
                   struct dws_actions *out);

const char *dws_action_name (enum dws_action_kind kind);

#endif /* !LIBDWS_RECONCILE_H */

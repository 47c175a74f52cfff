/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The decision: given the facts about a job and its workflow, what to do next.
 *
 * dws_reconcile() has no memory and performs no action. Callers may call it at
 * any time, any number of times: it never asks what has changed. The caller
 * carries the actions out and calls again when that has changed a fact.
 */

#ifndef LIBDWS_RECONCILE_H
#define LIBDWS_RECONCILE_H

#include "libdws/facts/job.h"
#include "libdws/facts/workflow.h"

/* When the epilog of a job that has run ends.
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
    double prolog_timeout;      // until the job may run
    double setup_timeout;
    double prerun_timeout;
    double postrun_timeout;
    double teardown_after;      // PostRun and DataOut together
    double orphan_grace;        // before an unknown workflow is torn down
    double stage_out_retry;     // kept so long when its stage-out has failed;
                                //  0 or less: not at all
    double data_first_timeout;  // so long storage with data waits for nodes
    double data_first_yield;    // and so long for nodes that are idle
    int save_datamovements;     // so many are recorded before Teardown
    int container_log_bytes;    // of each container, likewise
    int release_nodes;          // enum dws_release
};

#define DWS_POLICY_DEFAULT { \
    .tc_timeout = 10., \
    .prolog_timeout = -1., \
    .setup_timeout = -1., \
    .prerun_timeout = -1., \
    .postrun_timeout = -1., \
    .teardown_after = -1., \
    .orphan_grace = 10., \
    .data_first_timeout = -1., \
    .data_first_yield = -1., \
}

/* The actions. Of each: its kind, what it is called in code and in text, and
 * who carries it out: the agent, by what it does to objects of Kubernetes, or
 * Flux (job manager, resource module, KVS).
 */
#define DWS_ACTIONS(X) \
    /* create the workflow in Proposal */ \
    X (CREATE, create, "create", AGENT) \
    /* read the DirectiveBreakdowns */ \
    X (BREAKDOWNS, breakdowns, "breakdowns", AGENT) \
    /* let the job into the queue, or change what it waits for there: first */ \
    X (RESOURCE_UPDATE, resource_update, "resource-update", FLUX) \
    /* refuse the job in depend: text */ \
    X (REJECT, reject, "reject", FLUX) \
    /* read R */ \
    X (HOSTS, hosts, "hosts", FLUX) \
    /* write the Servers objects */ \
    X (SERVERS, servers, "servers", AGENT) \
    /* write the Computes object */ \
    X (COMPUTES, computes, "computes", AGENT) \
    /* make the Computes object again if somebody has deleted it */ \
    X (REPAIR, repair, "repair", AGENT) \
    /* change an annotation of the Computes object, so that NNF looks at once */ \
    X (TOUCH, touch, "touch", AGENT) \
    /* set desiredState: state */ \
    X (DESIRE, desire, "desire", AGENT) \
    /* set desiredState to Teardown */ \
    X (TEARDOWN, teardown, "teardown", AGENT) \
    /* let the job run */ \
    X (PROLOG_REMOVE, prolog_remove, "prolog-remove", FLUX) \
    /* let the job go */ \
    X (EPILOG_REMOVE, epilog_remove, "epilog-remove", FLUX) \
    /* job exception: type, severity, text */ \
    X (RAISE, raise, "raise", FLUX) \
    /* to the KVS: timing of state, whole object; then set 'bit' in \
     * job->saved */ \
    X (SAVE, save, "save", FLUX) \
    /* read which hosts lag behind */ \
    X (MOUNTS, mounts, "mounts", AGENT) \
    /* read which rabbits lag behind, or hold allocations */ \
    X (ALLOCATIONS, allocations, "allocations", AGENT) \
    /* write Computes without the hosts that lag */ \
    X (EXCLUDE, exclude, "exclude", AGENT) \
    /* go on without the hosts that lag */ \
    X (FORCE_READY, force_ready, "force-ready", AGENT) \
    /* name the hosts that lag to the job: severity 1 */ \
    X (NOTIFY, notify, "notify", FLUX) \
    /* drain the hosts that lag */ \
    X (DRAIN, drain, "drain", FLUX) \
    /* drain the hosts that a job without epilog has left mounted */ \
    X (KEEP_NODES, keep_nodes, "keep-nodes", FLUX) \
    /* undrain them */ \
    X (UNDRAIN, undrain, "undrain", FLUX) \
    /* disable rabbits that hold allocations */ \
    X (DISABLE, disable, "disable", AGENT) \
    /* record data movements and container logs, then set movements */ \
    X (MOVEMENTS, movements, "movements", AGENT) \
    /* read how far data movements have got */ \
    X (PROGRESS, progress, "progress", AGENT) \
    /* note in the workflow that its stage-out has failed now */ \
    X (KEEP, keep, "keep", AGENT) \
    /* try the stage-out again, then note in the workflow that this is done */ \
    X (RETRY, retry, "retry", AGENT) \
    /* read the eventlog of a job that is gone */ \
    X (RECALL, recall, "recall", FLUX) \
    /* a job that was let go has lost data: text, until; keep that, then set \
     * reported, or with 'until' recorded. Without text: it is moved now */ \
    X (REPORT, report, "report", FLUX) \
    /* read the workflow by name: the job has none as far as is known, or what is \
     * known of it is in doubt */ \
    X (LOOK, look, "look", AGENT) \
    /* give the workflow our label: flux-coral2 has made it, or it has lost that */ \
    X (ADOPT, adopt, "adopt", AGENT) \
    /* take our finalizer off */ \
    X (FINALIZER, finalizer, "finalizer", AGENT) \
    /* delete the workflow */ \
    X (DELETE, delete, "delete", AGENT)

#define DWS_ACTION_KIND(KIND, ident, name, by) DWS_ACT_##KIND,

enum dws_action_kind {
    DWS_ACTIONS (DWS_ACTION_KIND)
    DWS_ACT_COUNT,
};

/* An action that is under way has its bit set in job->busy, and is then not
 * asked for again. The caller sets and clears the bits.
 */
#define DWS_BUSY(kind) (1ULL << (kind))
_Static_assert (DWS_ACT_COUNT <= 64, "job->busy has too few bits");

/* Bits in job->saved: the timing of a state, the object before Teardown.
 */
#define DWS_SAVED(state) (1U << (state))
#define DWS_SAVED_LAST (1U << 31)

struct dws_action {
    enum dws_action_kind kind;
    enum dws_state state;       // DESIRE: the new one, SAVE: the one done
    uint32_t bit;               // SAVE
    bool whole;                 // SAVE: the workflow object too
    enum dws_first data_first;  // RESOURCE_UPDATE: its data is there (YES), or it
                                //  is to have nodes first after all (NO)
    int severity;               // RAISE
    const char *type;           // RAISE, a constant
    double until;               // RAISE, REPORT: it can be tried again until
                                //  this date (s since the epoch), 0: not
    char text[512];             // RAISE, REJECT, REPORT
};

#define DWS_ACTIONS_MAX 8

struct dws_actions {
    struct dws_action list[DWS_ACTIONS_MAX];    // in the order to do them
    size_t count;
    double wake;                // call again at this time at the latest, or 0
    const char *reason;         // what is being waited for: a constant, the
                                //  workflow's message or what the job
                                //  awaits. Never NULL
};

/* Compare and decide. 'wf' is NULL if the workflow does not exist, or if that is not
 * known (job->absent). 'out' is overwritten. Returns 0, or -1 with errno EINVAL if an
 * argument is NULL.
 */
int dws_reconcile (const struct dws_job *job,
                   const struct dws_workflow *wf,
                   const struct dws_policy *policy,
                   double now,
                   struct dws_actions *out);

/* Is this workflow to have the job's data before the job has nodes?
 */
bool dws_is_data_first (const struct dws_job *job, const struct dws_workflow *wf);

/* For a job that the epilog timeout lets go: true if no node that has a mount of its
 * workflow ('wf', NULL as for dws_reconcile()) can be allocated to another job. A drain
 * counts once it is sent; the caller waits for the response.
 */
bool dws_nodes_secured (const struct dws_job *job,
                        const struct dws_workflow *wf);

/* Likewise: true if the rabbits with allocations of its workflow are known, and the
 * scheduler allocates none of them to another job.
 */
bool dws_rabbits_secured (const struct dws_workflow *wf);

/* Does a workflow that flux-coral2 has made belong to this job? True for a job that is
 * gone until its eventlog has been read: the workflow may be its own.
 */
bool dws_adopt_fits (const struct dws_job *job, const struct dws_workflow *wf);

/* Must Computes still be written for such a workflow, so that NNF mounts the nodes?
 */
bool dws_adopt_needs_computes (const struct dws_job *job,
                               const struct dws_workflow *wf);

const char *dws_action_name (enum dws_action_kind kind);

/* True if the agent carries it out.
 */
bool dws_action_needs_agent (enum dws_action_kind kind);

#endif /* !LIBDWS_RECONCILE_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The two fact records that dws_reconcile() compares: what Flux says about a
 * job, and what Kubernetes says about its workflow. JSON in them is text
 * (jsontext.h).
 */

#ifndef LIBDWS_WORKFLOW_H
#define LIBDWS_WORKFLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "error.h"

#define DWS_FINALIZER "flux-framework.readthedocs.io/workflow"
#define DWS_INSTANCE_LABEL "flux-framework.org/instance"
#define DWS_FAILED_ANNOTATION "flux-framework.org/failed-nodes"
#define DWS_NAMESPACE "default"

/* Where the job is, in the order in which it gets there.
 * GONE is a job that is inactive, or that Flux never heard of.
 */
enum dws_phase {
    DWS_PHASE_DEPEND,
    DWS_PHASE_PENDING,
    DWS_PHASE_PROLOG,
    DWS_PHASE_RUNNING,
    DWS_PHASE_EPILOG,
    DWS_PHASE_GONE,
};

/* Workflow states, in their order. NONE: not yet given one by DWS.
 */
enum dws_state {
    DWS_STATE_NONE,
    DWS_STATE_PROPOSAL,
    DWS_STATE_SETUP,
    DWS_STATE_DATAIN,
    DWS_STATE_PRERUN,
    DWS_STATE_POSTRUN,
    DWS_STATE_DATAOUT,
    DWS_STATE_TEARDOWN,
};

enum dws_status {
    DWS_STATUS_NONE,
    DWS_STATUS_DRIVERWAIT,
    DWS_STATUS_TRANSIENT,
    DWS_STATUS_COMPLETED,
    DWS_STATUS_ERROR,
};

/* The Flux side. The first part comes from Flux and can be asked for again
 * at any time. The second is what this process has set going: it may be
 * forgotten (all zero) at any time, the price is work done twice.
 */
struct dws_job {
    uint64_t id;
    uint32_t userid;
    enum dws_phase phase;
    char *directives;           // JSON array of strings, presets expanded,
                                //  NULL if Flux has not told of the job
    char *resources;            // JSON: jobspec resources as submitted
    char *hosts;                // RFC 29 hostlist of R, NULL until known
    int failure_tolerance;
    char *group;                // that the user asks for, or NULL
    bool run_started;
    bool exception;             // a fatal exception was raised: CLEANUP is near
    bool abandoned;             // epilog timeout: the epilog was let go
    bool released;              // the epilog has ended as it should
    bool teardown;              // tear down without PostRun, DataOut
    double t_epilog;            // when the epilog began, 0 before
    double t_gone;              // when it was found to be gone, 0 before

    uint32_t busy;              // bit N: action of kind N is under way, or
                                //  has failed and is not to be repeated yet
    uint32_t saved;             // bits DWS_SAVED: was sent to the KVS
    bool raised;                // the workflow's error was raised
    bool reported;              // released: that data was lost is on record
    bool recalled;              // gone: what its eventlog says is known
    char *refusal;              // why the workflow can never serve the job
};

/* The Kubernetes side. The second part is not in the object itself, and
 * is kept as long as the object is the same one (by uid).
 */
struct dws_workflow {
    char *name;
    char *namespace;
    char *uid;
    uint64_t version;           // resourceVersion
    uint64_t jobid;             // from the name
    bool ours;                  // carries the label of this instance
    bool deleting;
    bool finalizer;             // ours is on it
    enum dws_state desired;
    enum dws_state state;
    enum dws_status status;
    bool ready;
    bool force_ready;           // spec.forceReady
    bool destroys;              // its Teardown is a destroy_persistent
    bool containers;            // it has a container
    char *failed;               // hosts that the job does without, or NULL
    double t_desired;           // when 'desired' was asked for, 0: unknown
    double t_ready;             // when 'state' was reached, 0: unknown
    char *message;              // never NULL
    char *elapsed;              // elapsedTimeLastState or NULL
    char *computes;             // name of the Computes object or NULL
    char *computes_namespace;
    char *env;                  // JSON: status.env, or NULL
    char *token;                // name of the Secret with it, or NULL
    char *token_namespace;
    char *breakdown_refs;       // JSON: status.directiveBreakdowns, or NULL

    size_t breakdown_count;     // references in breakdown_refs
    char *breakdowns;           // JSON: array of what is of interest in the
                                //  objects, NULL until all were read
    bool servers_written;
    bool computes_written;
    bool movements;             // data movements were recorded
    double t_transient;         // since when in TransientCondition, or 0

    /* What keeps the workflow in its state, read when that is asked for. */
    enum dws_state lag_state;   // the state it was read in, NONE: never
    char *lagging;              // hosts that are behind, and those failed
    size_t lagging_count;
    bool shared;                // no host can do without the others' storage
    bool excluded;              // Computes was written without those lagging
    bool drained;               // those lagging were
    char *allocated;            // rabbits with allocations, NULL: not read
    bool disabled;

    /* Data on the move, read when a time limit has passed. */
    double t_progress;          // when it was read, 0: never
    int progress;               // how far it had got (movements.h)
    bool advancing;             // further than when it was read before
};

/* Decode one entry of a job-manager.dws.sync response, or the payload of
 * dws.create (where phase is left out: it is DWS_PHASE_DEPEND).
 * Unknown keys are ignored. Fails with EPROTO or ENOMEM.
 */
struct dws_job *dws_job_decode (json_t *o, dws_error_t *error);
void dws_job_destroy (struct dws_job *job);

/* Take over what Flux says now from 'fresh', which is only good for
 * dws_job_destroy() after that. Phases never go back and
 * nothing that has happened is undone, so an answer that was overtaken by
 * events on its way does no harm.
 */
void dws_job_update (struct dws_job *job, struct dws_job *fresh);

/* Move the phase forward. A step back is ignored.
 * Returns true if that changed something.
 */
bool dws_job_advance (struct dws_job *job, enum dws_phase phase);

/* Set job->hosts from an R object (RFC 20). Fails with EINVAL or ENOMEM.
 */
int dws_job_set_R (struct dws_job *job, json_t *R, dws_error_t *error);

/* Note what the eventlog (RFC 18) of a job that is gone says: whose it was,
 * and whether its epilog has ended or was given up. NULL if there is none any
 * more.
 */
void dws_job_recall (struct dws_job *job, const char *eventlog);

/* Decode a Workflow object as Kubernetes has it: whatever is missing has not
 * happened yet. Ten thousand of these records may have to be kept, so they
 * hold what is needed and not the object.
 * 'instance' (may be NULL) is the value that makes the workflow ours.
 * Fails with EINVAL if it is no workflow of a Flux job, or ENOMEM.
 */
struct dws_workflow *dws_workflow_decode (json_t *object,
                                          const char *instance,
                                          dws_error_t *error);
void dws_workflow_destroy (struct dws_workflow *wf);

/* Carry over from 'old' (may be NULL) what is not in the object.
 * 'now' dates what Kubernetes has no date for: a TransientCondition that was
 * not there before, a desired state that DWS has not taken up yet.
 */
void dws_workflow_inherit (struct dws_workflow *wf,
                           struct dws_workflow *old,
                           double now);

/* Note that 'hosts' (a hostlist) keep the workflow in the state it is in.
 * Fails with EINVAL or ENOMEM.
 */
int dws_workflow_set_lagging (struct dws_workflow *wf,
                              const char *hosts,
                              bool shared,
                              dws_error_t *error);

/* Note how far the data movements have got at the time 'now': 'progress' is
 * below 0 if nothing moves.
 */
void dws_workflow_set_progress (struct dws_workflow *wf,
                                int progress,
                                double now);

/* "fluxjob-ID", or where another instance on the cluster has a job with that
 * id and was first, with 'instance' (else NULL): "fluxjob-ID-XXXXXXXX", after
 * how the instance's own name begins. Returns buf.
 */
#define DWS_NAME_SIZE 48
const char *dws_workflow_name (uint64_t jobid, const char *instance,
                               char buf[DWS_NAME_SIZE]);

/* The job id in a name of either form, 0 if it is of another form.
 */
uint64_t dws_workflow_jobid (const char *name);

const char *dws_phase_name (enum dws_phase phase);
const char *dws_state_name (enum dws_state state);
const char *dws_status_name (enum dws_status status);
enum dws_state dws_state_parse (const char *s);

#endif /* !LIBDWS_WORKFLOW_H */

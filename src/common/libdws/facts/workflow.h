/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The fact record that dws_reconcile() compares with that of job.h: what Kubernetes
 * says about a job's workflow. JSON in it is text (jsontext.h).
 */

#ifndef LIBDWS_WORKFLOW_H
#define LIBDWS_WORKFLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "libutil/names.h"
#include "libdws/storage/breakdowns.h"
#include "libdws/util/error.h"

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

/* Why DWS is still unmounting the nodes of a job that does without some of them.
 */
enum dws_unmount {
    DWS_UNMOUNT_UNREAD,         // not known
    DWS_UNMOUNT_BUSY,           // nodes that answer are being unmounted, or all are
    DWS_UNMOUNT_WAIVED,         // the nodes that it does without are left
    DWS_UNMOUNT_FIRST,          // they are, and other nodes' turn comes after them
    DWS_UNMOUNT_DEAF,           // so, and DWS waits for them though they be Disabled
};

enum dws_status {
    DWS_STATUS_NONE,
    DWS_STATUS_DRIVERWAIT,
    DWS_STATUS_TRANSIENT,
    DWS_STATUS_COMPLETED,
    DWS_STATUS_ERROR,
};

/* The first part is in the Workflow object, and its texts are in one piece of memory
 * with the record. The second part is not, and is kept as long as the object is the
 * same one (by uid).
 *
 * The members t_* are moments to measure from, in seconds. Decoding sets those of the
 * object to stamps of the wall clock; the caller converts them to its time line
 * (libdws/util/timeline.h). 'stamped' and 'failed_at' stay wall clock stamps, as noted.
 */
struct dws_workflow {
    char *name;
    char *namespace;
    char *uid;
    uint64_t version;           // resourceVersion
    uint64_t jobid;             // from the name
    int64_t userid;             // spec.userID, -1: none
    uint64_t directives_hash;   // dws_commands_hash()
    bool ours;                  // this instance has made it, as its annotation
                                //  says or, where it has none, its label
    bool unlabelled;            // ours, but without our label: no watch shows it
    bool stray;                 // carries neither: flux-coral2 has made it
    bool deleting;
    bool finalizer;             // ours is on it
    enum dws_state desired;
    enum dws_state state;
    enum dws_status status;
    bool ready;
    bool force_ready;           // spec.forceReady
    bool destroys;              // its Teardown is a destroy_persistent
    bool containers;            // it has a container
    bool moves;                 // data may be moved after PostRun, or in it
    size_t mounts;              // file systems that each of its nodes mounts
    char *failed;               // hosts that the job does without, or NULL
    char *waived;               // those of them in Computes, or NULL
    double t_desired;           // when 'desired' was asked for, 0: unknown
    double t_ready;             // when 'state' was reached, 0: unknown
    double stamped;             // since when it was in TransientCondition, as
    enum dws_state stamp_state; //  dws_workflow_stamp() has noted, 0: it has not,
    double t_stamp;             //  and the moment of that
    double failed_at;           // when its stage-out has failed first, as noted,
    double t_failed;            //  and the moment of that, 0: it has not
    bool data_first;            // made for a job that is to have its data before
                                //  it has nodes
    bool retry;                 // that is to be tried again, and has not been yet
    char *message;              // never NULL
    bool trouble;               // a driver reports an error
    bool outdated;              // NNF has failed it in Setup for the Servers of
                                //  before: it was not its fault, nor the job's
    char *silent;               // rabbit that does not answer, or NULL
    char *elapsed;              // elapsedTimeLastState or NULL
    char *computes;             // name of the Computes object or NULL
    char *computes_namespace;
    char *env;                  // JSON: status.env, or NULL
    char *token;                // name of the Secret with it, or NULL
    char *token_namespace;
    char *breakdown_refs;       // JSON: status.directiveBreakdowns, or NULL
    char *noted;                // spec.jobID, of a stray one, or NULL

    bool made;                  // by this process, for the job that has it
    bool doubted;               // what watches and lists tell may not be so: read it
                                //  by name before anything else is done
    size_t breakdown_count;     // references in breakdown_refs
    struct dws_breakdowns *breakdowns;  // NULL until all were read
    bool servers_written;
    bool computes_written;
    bool spoilt;                // one of the two is gone, and nobody makes it again
    double t_computes;          // when that object was last looked for in this
                                //  state, 0: never
    double t_seen;              // since when 'state' has been seen
    double t_touched;           // when TOUCH was last asked for in this state, 0:
                                //  never
    bool movements;             // data movements were recorded
    bool recorded;              // how its stage-out fares is what the list of
                                //  losses says
    bool recording;             // so when what is being written is written
    double t_transient;         // since when in TransientCondition, or 0
    double t_trouble;           // since when a driver reports an error, or 0

    /* Causes that keep the workflow in its state, read on request. */
    enum dws_state lag_state;   // the state it was read in, NONE: never
    double t_lag;               // when it was read last, 0: never
    enum dws_unmount unmount;
    char *places;               // JSON: {DIRECTIVE: path} on compute nodes, or
                                //  NULL
    char *lagging;              // hosts that are behind, and those failed
    size_t lagging_count;
    bool lag_missing;           // they lack mounts; else they have them still
    bool shared;                // no host can do without the others' storage
    bool notified;              // the job was told of those lagging
    bool excluded;              // Computes was written without them
    bool drained;               // those lagging were
    char *allocated;            // rabbits with allocations, NULL: not read
    bool disabled;              // these were
    bool barred;                // and the scheduler has taken that in
    bool kept;                  // those mounted still by a job that ended
                                //  without an epilog were drained
    bool undrained;             // and were undrained: they are not mounted. Or those
                                //  the plugin has drained for a job that was
                                //  let go

    /* Data on the move, read when a time limit has passed. */
    double t_progress;          // when it was read, 0: never
    int progress;               // how far it had got (movements.h),
    double moved;               //  and how many bytes these were
    bool advancing;             // further than when it was read before
};

/* Decode what the agent reports of a Workflow object: whatever is missing, or of
 * another type, has not happened yet. Ten thousand of these records may have to be kept,
 * so they hold what is needed and not the object.
 * 'instance' (may be NULL) is the value that makes the workflow ours: of the annotation
 * that it was made with or, where there is none, of the label. The label alone is what
 * people edit, and what watches select by.
 * Fails with EINVAL if it is no workflow of a Flux job, or with ENOMEM.
 */
struct dws_workflow *dws_workflow_decode (json_t *o, const char *instance,
                                          dws_error_t *error);
void dws_workflow_destroy (struct dws_workflow *wf);

/* Carry over from 'old' (may be NULL) what is not in the object.
 * 'now' dates what was not there before, and what Kubernetes has no date for: a
 * TransientCondition, a desired state that DWS has not taken up yet. The stamps in the
 * object date only what is older than the first record of it: another host has made
 * them, by its own clock.
 */
void dws_workflow_inherit (struct dws_workflow *wf,
                           struct dws_workflow *old,
                           double now);

/* The annotation that records since when the workflow is in TransientCondition
 * ('since': the wall clock at wf->t_transient). dws_workflow_inherit() uses it when
 * there is no older record. Returns buf. dws_workflow_is_stamped(): does the workflow
 * have exactly this annotation?
 */
#define DWS_STAMP_SIZE 64
const char *dws_workflow_stamp (const struct dws_workflow *wf, double since,
                                char buf[DWS_STAMP_SIZE]);
bool dws_workflow_is_stamped (const struct dws_workflow *wf, double since);

/* Note that 'hosts' (a hostlist) keep the workflow in its state. Actions that were
 * taken for the same hosts stay noted. Fails with EINVAL or ENOMEM.
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
                                double bytes,
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

/* Does DWS report an error that is worth telling of? One in three healthy
 * workflows has one for a moment, which is not.
 */
bool dws_workflow_troubled (const struct dws_workflow *wf, double now);

const char *dws_state_name (enum dws_state state);

/* The state whose name are the first 'len' bytes at 's', or DWS_STATE_NONE.
 */
enum dws_state dws_state_parse (const char *s, size_t len);
const char *dws_status_name (enum dws_status status);

#endif /* !LIBDWS_WORKFLOW_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Records with the facts about each job and its workflow, and the queue of jobs
 * to reconcile.
 *
 * Parts that learn facts change the record and call jobs_changed(). The job is
 * reconciled in the next reactor turn, once for any number of changes.
 */

#ifndef DWS_JOBS_H
#define DWS_JOBS_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>
#include <flux/core.h>

#include "libdws/decide/reconcile.h"
#include "libdws/facts/job.h"
#include "libdws/facts/workflow.h"
#include "base/ctx.h"
#include "facts/slots.h"
#include "facts/space.h"
#include "facts/tally.h"
#include "facts/underway.h"

struct job {
    struct dws_ctx *ctx;
    struct dws_job *facts;
    struct dws_workflow *wf;            // NULL: there is none
    uint64_t version;                   // newest seen of the workflow
    unsigned int generation;            // workflows that came and went
    struct underway underway;           // commands and requests without answer
    char *object;                       // text of the Workflow object from which
                                        //  'wf' was decoded, if the agent sent
                                        //  it, until the job is reconciled
    struct dws_bytes reserved;          // from R
    json_t *ssds;                       // Fluxion's, from R, or NULL
    double t_alloc;                     // when the job got its nodes, from R
    struct claim claim;                 // the job's bytes on rabbits
    flux_watcher_t *wake;               // deadlines of the table
    struct retry *retry;                // of failed actions, or NULL
    struct job *next;                   // in the list of changed jobs
    struct counted counted;             // tally.h
    char *retry_reason;                 // job_set_retry_reason()
    struct slot_data slots[SLOT_COUNT]; // what other parts keep about the job
    bool R_read;                        // 'reserved' is what R says
    bool changed;
    bool listed;                        // in the latest answer to dws.sync
    bool seen;                          // its workflow is in the snapshot
    bool taken;                         // another instance has a workflow of
                                        //  the name that its own would have
};

struct jobs *jobs_create (struct dws_ctx *ctx);
void jobs_destroy (struct jobs *jobs);

size_t jobs_count (struct jobs *jobs);
struct job *jobs_find (struct jobs *jobs, uint64_t id);

/* The one with the lowest id above 'after', or NULL.
 */
struct job *jobs_next (struct jobs *jobs, uint64_t after);

/* How many there are of each kind.
 */
const struct tally *jobs_tally (const struct jobs *jobs);

void jobs_each (struct jobs *jobs, void (*cb)(struct job *job, void *arg),
                void *arg);

/* Note what Flux says about a job: a new record, or an update of the old one.
 * Takes over 'facts'. Returns NULL with errno ENOMEM.
 */
struct job *jobs_learn (struct jobs *jobs, struct dws_job *facts);

/* Search for the workflow of an unknown job. The job gets a record in phase gone, which
 * is destroyed if the workflow does not exist.
 */
void jobs_look_for (struct jobs *jobs, uint64_t id);

/* Note a workflow, if it is ours and not older than the version known. Takes over 'wf'.
 * 'text' is the whole object, where available (dws_report_text()), for the record in
 * the KVS. With 'deleted' set a watch reports it as deleted: see jobs_doubt_workflow().
 * For a workflow without a job a record in phase gone is created.
 */
void jobs_learn_workflow (struct jobs *jobs, struct dws_workflow *wf,
                          const char *text, bool deleted);

/* Have the storage controllers freed all but persistent storage?
 */
bool job_torn_down (const struct job *job);

/* Note that a job's workflow does not exist, or not any more: a request by its name was
 * answered 404.
 */
void jobs_forget_workflow (struct job *job);

/* A watch or a list reports the workflow as deleted, or the workflow makes no progress
 * (agent/overdue.h). Watches and lists can be wrong: the workflow may have lost its
 * label, the list may be older than the workflow, the watch may be dead. No other
 * action runs until the workflow was read by its name (act/look.c).
 */
void jobs_doubt_workflow (struct job *job);

/* Reconcile this job soon, once the facts are complete.
 */
void jobs_changed (struct job *job);

/* The same for all jobs.
 */
void jobs_changed_all (struct jobs *jobs);

/* The facts from one source are complete: reconcile all jobs if those from the
 * other are, too.
 */
enum jobs_source {
    JOBS_OF_FLUX,               // the jobs
    JOBS_OF_KUBERNETES,         // their workflows
    JOBS_SOURCES,
};

void jobs_all_known (struct jobs *jobs, enum jobs_source source);

/* Reconcile some jobs now, if many have changed. Call this between messages,
 * since the reactor may handle many in a row.
 */
void jobs_keep_up (struct jobs *jobs);

/* Reconcile this job again after 'after' seconds, if it does not change before.
 * For actions of several steps.
 */
void jobs_wake (struct job *job, double after);

/* Note that a command or request of this kind of action was sent, or answered.
 * A failed action is retried with growing delay.
 */
void job_begin (struct job *job, enum dws_action_kind kind, enum way way);
void job_end (struct job *job, enum dws_action_kind kind, enum way way,
              bool ok);

/* Kubernetes can be reached again: retry failed actions now.
 */
void jobs_hasten (struct jobs *jobs);

/* Why a command to the agent is repeated, for the job's owner; NULL: no command
 * is.
 */
void job_set_retry_reason (struct job *job, const char *text);

/* The agent is gone: pending commands get no result, and workflows may change
 * unseen.
 */
void jobs_agent_lost (struct jobs *jobs);

/* The name of a job's workflow, or of the workflow to make. 'buf' may be used
 * for it.
 */
const char *job_workflow (const struct job *job, char buf[DWS_NAME_SIZE]);

/* For log lines: job id in f58 form and workflow name.
 */
#define JOB_LABEL_SIZE 96
const char *job_label (const struct job *job, char buf[JOB_LABEL_SIZE]);

#endif /* !DWS_JOBS_H */

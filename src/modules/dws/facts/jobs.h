/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The facts about each job and its workflow, and when to decide anew.
 *
 * Everything that learns something changes the record and calls
 * jobs_changed(); the decision is taken, once for any number of changes, when
 * the reactor comes round.
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
#include "facts/space.h"
#include "facts/tally.h"
#include "facts/underway.h"

/* Is it written down when the file system that a job creates expires? leases.h
 */
enum promise {
    PROMISE_NONE,
    PROMISE_UNDER_WAY,
    PROMISE_MADE,
};

struct job {
    struct dws_ctx *ctx;
    struct dws_job *facts;
    struct dws_workflow *wf;            // NULL: there is none
    uint64_t version;                   // newest seen of the workflow
    unsigned int generation;            // workflows that came and went
    struct underway underway;           // what was asked for
    char *object;                       // text of the Workflow that 'wf' was
                                        //  decoded from, where the agent has sent
                                        //  it, until that is decided on
    json_t *breakdowns;                 // those read so far
    json_t *servers;                    // where storage is that is used, or the
                                        //  job's own, if that comes first
    json_t *sent;                       // the latter, as it is being written
    enum dws_first offering;            // of the resource-update under way
    bool awaits_pool;                   // sched/pool.h
    bool in_the_way;                    // of others, at the last look of
                                        //  act/contention.h
    int64_t nodes;                      // that it asks for, there; 0: not known
    json_t *reserved;                   // bytes per rabbit, from R, or NULL
    json_t *ssds;                       // Fluxion's, from R, or NULL
    char *near;                         // rabbits of what dw_near names
    char *near_fault;                   // or why there are none
    bool near_asked;
    double t_alloc;                     // when it was given its nodes, from R
    double t_down;                      // since when it waits for a rabbit
                                        //  that is down, or a file system that
                                        //  is in use (s), 0: it does not
    struct waiter *waiter;              // facts/waitlist.h, or NULL
    struct share *share;                // facts/totals.h, or NULL
    struct claim claim;                 // what it holds on rabbits
    flux_watcher_t *wake;               // deadlines of the table
    struct retry *retry;                // of what has failed, or NULL
    struct note *note;                  // tell/annotate.h, or NULL
    char *shortage;                     // why it has no nodes (tell/queued.h), or NULL
    struct draft *draft;                // act/drafts.h, or NULL
    struct late *late;                  // act/late.h, or NULL
    struct job *look_next;              // in a list of annotate.c
    struct job **look_at;               // what points to it there, or NULL
    struct explanation *explanation;    // tell/explain.h, or NULL
    struct job *next;                   // in the list of changed jobs
    struct counted counted;             // tally.h
    char *trouble;                      // job_set_trouble()
    uint64_t still_version;             // 'version' at the last look of
    int still;                          //  agent/overdue.h, and how many looks
                                        //  it has been that
    int missing;                        // writes of Servers or Computes that were
                                        //  answered 404, in a row
    enum promise promised;
    bool waited;                        // tell/annotate.h
    bool stamping;                      // agent/stamp.h
    bool losing;                        // the loss being reported is for good
    bool daemons_saved;                 // the prolog will find them
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

/* So many workflows were made anew for jobs that go on, as NNF had failed them for
 * Servers that it had not seen yet.
 */
int jobs_remade (const struct jobs *jobs);

void jobs_each (struct jobs *jobs, void (*cb)(struct job *job, void *arg),
                void *arg);

/* Note what Flux says about a job: a new record, or an update of the old one.
 * Takes over 'facts'. Returns NULL with errno ENOMEM.
 */
struct job *jobs_learn (struct jobs *jobs, struct dws_job *facts);

/* Have the workflow of a job that is not known looked for: it gets a record in phase
 * gone, which is destroyed if there is none.
 */
void jobs_look_for (struct jobs *jobs, uint64_t id);

/* Note a workflow, if it is ours and not older than what is known. Takes over 'wf'.
 * 'text' is all of its object, where it is at hand (dws_report_text()): it may be
 * saved.
 * With 'deleted' set a watch has it as gone: jobs_doubt_workflow(). A workflow
 * whose job is not known gets a record in phase gone.
 */
void jobs_learn_workflow (struct jobs *jobs, struct dws_workflow *wf,
                          const char *text, bool deleted);

/* Have the storage controllers given back all but persistent storage?
 */
bool job_torn_down (const struct job *job);

/* Note that a job's workflow does not exist, or not any more: a request by its name was
 * answered 404.
 */
void jobs_forget_workflow (struct job *job);

/* A watch or a list has the workflow as gone, or it does not move (agent/overdue.h). It
 * may have lost the label that these select by, the list may be older than the workflow,
 * or the watch deaf: it is read by its name (act/look.c) before anything else is done.
 */
void jobs_doubt_workflow (struct job *job);

/* Decide about this job soon. Does nothing while the facts are incomplete.
 */
void jobs_changed (struct job *job);

/* The same for all jobs.
 */
void jobs_changed_all (struct jobs *jobs);

/* All facts of one kind have become known: decide about all jobs, if those of
 * the other kind are, too.
 */
enum jobs_source {
    JOBS_OF_FLUX,               // the jobs
    JOBS_OF_KUBERNETES,         // their workflows
    JOBS_SOURCES,
};

void jobs_all_known (struct jobs *jobs, enum jobs_source source);

/* Decide about some now, if there is a lot to decide about. To be called
 * between messages: the reactor may have many in a row.
 */
void jobs_keep_up (struct jobs *jobs);

/* Decide about this job again in so many seconds, if nothing changes before.
 * For actions that are carried out in several steps.
 */
void jobs_wake (struct job *job, double after);

/* Note the beginning and the end of something that was asked for by an
 * action of this kind. A failure is tried again later, with growing delay.
 */
void job_begin (struct job *job, enum dws_action_kind kind, enum way way);
void job_end (struct job *job, enum dws_action_kind kind, enum way way,
              bool ok);

/* Kubernetes can be reached again: what has failed is tried again now.
 */
void jobs_hasten (struct jobs *jobs);

/* Why a command to the agent is repeated, for the job's owner; NULL: no command
 * is.
 */
void job_set_trouble (struct job *job, const char *text);

/* The results of commands to the agent will not come any more, and what was
 * known of workflows may not be so any more.
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

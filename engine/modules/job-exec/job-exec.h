/* SPDX-License-Identifier: LGPL-3.0-only */
/* job-exec.h - the exec service's record of a job, and what the two ways to
 * run one (job shells, simulation) and the service offer each other.
 */
#ifndef SOLO_JOB_EXEC_H
#define SOLO_JOB_EXEC_H

#include <stdarg.h>
#include <stdbool.h>
#include <jansson.h>
#include <flux/core.h>
#include <flux/hostlist.h>
#include <flux/idset.h>

#include "common/respond.h"
#include "jobutil.h"

struct job;

struct exec {
    flux_t *h;
    flux_msg_handler_t **handlers;
    struct idmap *jobs;
    double kill_timeout;
    double max_start_delay_percent;
    int max_kill_count;
    int term_signal;
    int kill_signal;
};

/* One way to run a job.  init returns 1 if it takes the job, 0 if not, -1
 * with errno after an error.  Once start has returned 0, job_started() and
 * job_complete() must follow, the latter also if kill is called.
 */
struct exec_ops {
    const char *name;
    int (*init) (struct job *job);
    int (*start) (struct job *job);
    void (*kill) (struct job *job, int signum);
    char *(*active_ranks) (struct job *job); // caller frees; or NULL
    void (*destroy) (struct job *job);
};

extern const struct exec_ops test_ops;
extern const struct exec_ops shell_ops;

struct job {
    struct exec *exec;
    flux_t *h;
    flux_jobid_t id;
    uint32_t userid;
    char ns[64];                // guest KVS namespace
    const flux_msg_t *req;      // job-exec.start request
    json_t *jobspec;
    struct idset *ranks;
    double starttime;
    double expiration;          // 0: no limit
    double t0;                  // when the request came

    const struct exec_ops *ops;
    void *data;                 // owned by ops

    int status;                 // wait status so far
    int exception_status;       // wait status that an exception brought, or -1
    flux_future_t *step;        // what the job waits for in the KVS
    int kill_count;
    double kill_timeout;
    flux_watcher_t *timer_expire;
    flux_watcher_t *timer_kill_tasks;
    flux_watcher_t *timer_kill_shells;

    unsigned int reattach:1;
    unsigned int has_namespace:1;
    unsigned int started:1;     // ops->start was called
    unsigned int running:1;     // job_started() was called
    unsigned int exception:1;   // a fatal exception is under way
    unsigned int complete:1;    // "finish" was sent
    unsigned int finalizing:1;
};

/* All job shells run, or the simulation does.
 */
void job_started (struct job *job);

/* Everything that ran has ended: 'status' is the greatest wait status.
 */
void job_complete (struct job *job, int status);

/* End the job with a fatal exception of type "exec".
 */
void job_fatal (struct job *job, int errnum, const char *fmt, ...)
    __attribute__ ((format (printf, 3, 4)));

/* Append an event to the job's exec.eventlog.
 */
void job_event (struct job *job, const char *name, const char *fmt, ...);

struct job *exec_find_job (struct exec *exec, flux_jobid_t id);

/* Tell job-manager of a fatal exception.
 */
void job_exception (struct job *job, const char *type, const char *note);

/* limits.c: ask the job to end, and see to it that it does.
 */
void job_cancel (struct job *job);

/* Raise the timeout exception when the time of R is over.
 */
void job_set_expiration (struct job *job);

/* config.c: take [exec], or leave all as it is.
 */
int exec_configure (struct exec *exec, const flux_conf_t *conf,
                    flux_error_t *errp);

/* A string of [exec], or NULL.
 */
const char *exec_config (flux_t *h, const char *name);

/* Request handlers that one of the ways to run a job answers.
 */
void shell_barrier_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg);

#endif

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The plugin's own state and its record of each active rabbit job. A record
 * lives in the job's aux container and goes away with the job or the plugin,
 * and takes its timer and outstanding requests with it.
 */

#ifndef DWS_JOBTAP_JOB_H
#define DWS_JOBTAP_JOB_H

#include <stdbool.h>
#include <jansson.h>
#include <flux/core.h>
#include <flux/jobtap.h>

#include "libdws/config/config.h"
#include "libdws/directive/directive.h"
#include "facts.h"

struct dependency;
struct jobtap_clock;

struct jobtap {
    flux_plugin_t *p;
    flux_t *h;
    struct dws_config *config;  // what it goes by of [rabbit]
    double epilog_timeout;      // s; 0 = none
    struct jobtap_clock *clock; // what it is measured by
    bool configured;            // its options are those of the configuration
    struct jobtap_job *jobs;       // all active rabbit jobs
    struct dependency *dependencies; // on the data of jobs, of any job
    struct flux_msglist *deferred; // requests that wait for a rebuild
    flux_watcher_t *retry;      // handles them once more, in a turn of its own
    bool greeted;               // the dws service knows that it is there
    int64_t up;                 // nodes, see queue.h
    int64_t all;                // nodes, those that are not up included
};

/* Does the dws service have something to clean up for the job?
 */
enum jobtap_taken {
    JOBTAP_TAKEN_NO,            // it has not heard of it, or has refused it
    JOBTAP_TAKEN_MAYBE,         // dws.create has not been answered
    JOBTAP_TAKEN_YES,           // or an earlier plugin may have asked for it
};

struct jobtap_job {
    struct jobtap *ctx;        // NULL once the plugin is going away
    struct jobtap_job *prev;
    struct jobtap_job *next;
    flux_jobid_t id;
    char idf58[32];
    uint32_t userid;
    int failure_tolerance;
    char *group;                // that the user asks for, or NULL
    json_t *where;              // "rabbits" and "near", if it asks for them
    json_t *dw;                 // single directives, presets and paths filled in
    unsigned int commands;      // enum dws_command: theirs
    json_t *resources;          // as submitted
    json_t *constraints;        // before ours were added, once they are, or NULL
    bool updated;               // we have written its resources and constraints
    bool expanded;              // 'dw' is not what was submitted
    bool nameless;              // 'dw' still lacks the name of the user
    char *dw_error;             // why 'dw' could not be parsed, or NULL
    struct jobtap_facts facts;
    bool accepted;              // false until job.new: its submission may fail
    bool known;                 // false until the eventlog has been read
    bool kept;                  // its priority is 0, see queue.h
    enum jobtap_taken taken;
    flux_future_t *f_request;   // the last request to the dws service
    flux_future_t *f_rebuild;   // reading the eventlog
    flux_future_t *f_abandon;   // a step of abandon.h, or NULL
    flux_future_t *f_expiration; // asking the scheduler for more time, or NULL
    const char *exception;      // what to raise when f_request fails
    flux_watcher_t *timer;      // epilog-timeout
    flux_watcher_t *again;      // the next try of such a step
};

struct jobtap *jobtap_create (flux_plugin_t *p);
void jobtap_destroy (struct jobtap *ctx);

/* Announce the plugin: the dws service then asks for all jobs, and once more when the
 * plugin goes.
 */
void jobtap_hello (struct jobtap *ctx);

/* The presets as they are for the job that 'args' describe (libdws/directive/presets.h):
 * a new reference; NULL if there are none, or no memory. 'user' is the name of the
 * user, or NULL.
 */
json_t *jobtap_args_presets (struct jobtap *ctx,
                             flux_plugin_arg_t *args,
                             const char *user);

/* Can a job have this as its dw_failure_tolerance? 'tolerance' may be NULL. Fails with
 * EINVAL.
 */
int jobtap_tolerance_check (json_t *tolerance, dws_error_t *error);

/* Make the record of the job that 'args' describe, and attach it.
 * Returns the record; or NULL with errno 0 if it is not a rabbit job, or with
 * errno set on failure.
 */
struct jobtap_job *jobtap_job_create (struct jobtap *ctx,
                                      flux_plugin_arg_t *args);

/* The name of a nameless job's user is known: parse its directives once more, and
 * record them in its jobspec. A fault in them is reported in job->dw_error. Returns 0,
 * or -1 with errno set.
 */
int jobtap_job_name (struct jobtap_job *job, const char *user);

/* Return the record of an active rabbit job, or NULL. 'id' may be
 * FLUX_JOBTAP_CURRENT_JOB.
 */
struct jobtap_job *jobtap_job_lookup (struct jobtap *ctx, flux_jobid_t id);

/* Return the state of the job, or -1.
 */
int jobtap_job_state (struct jobtap_job *job);

/* The bank and the queue of a job, as its jobspec has them now: a new object
 * {"bank", "queue"} with those that there are, or NULL with errno ENOMEM. Other
 * plugins may change them after submission, so they are not kept. The first also has
 * "first" and "constraints" (doc/protocol.md).
 */
json_t *jobtap_job_place (struct jobtap_job *job);
json_t *jobtap_args_place (flux_plugin_arg_t *args);

/* Has the job not been through the queue, and no exception? Then it waits for the name
 * of its user, if it has none.
 */
bool jobtap_job_is_early (struct jobtap_job *job);

bool jobtap_job_is_queued (struct jobtap_job *job);

/* Return a new object as described for job-manager.dws.sync, JSON null if the
 * job need not be listed, or NULL with errno ENOMEM.
 */
json_t *jobtap_job_encode (struct jobtap_job *job);

/* Raise a fatal exception. The job may not be used afterwards: it can become
 * inactive before this returns.
 */
void jobtap_job_raise (struct jobtap_job *job,
                       const char *type,
                       const char *text);

/* Let the job go on, if it is held. Releasing the epilog may make the job
 * inactive: the record may not be used afterwards. Return 0 or -1 and errno.
 */
int jobtap_job_release_prolog (struct jobtap_job *job, int status);
int jobtap_job_release_epilog (struct jobtap_job *job, int status);

/* Start the timer for epilog-timeout, counted from the event with which the epilog
 * began. Before that event this does nothing.
 */
int jobtap_job_start_timer (struct jobtap_job *job);

/* The same once more for all jobs that were not let go by it.
 */
void jobtap_restart_timers (struct jobtap *ctx);

/* Set how long an epilog may last (s; 0 or less: for ever), also for epilogs that have
 * begun.
 */
void jobtap_set_timeout (struct jobtap *ctx, double timeout);

/* Call 'cb' with the job when 'f' is ready, or after 'timeout' (s, below zero:
 * never). Takes over 'f', in place of the future in 'slot', which is a member of
 * the job; 'f' may be NULL with errno set, which fails. Returns 0, or -1 with
 * errno set.
 */
int jobtap_job_await (struct jobtap_job *job,
                      flux_future_t **slot,
                      flux_future_t *f,
                      double timeout,
                      flux_continuation_f cb);

#endif /* !DWS_JOBTAP_JOB_H */

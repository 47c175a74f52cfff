/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The job manager's data and the calls between its parts.  Each
 * module instance has a struct manager; nothing is file-static.
 */
#ifndef SOLO_JOB_MANAGER_H
#define SOLO_JOB_MANAGER_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>
#include <jansson.h>
#include <flux/core.h>
#include <flux/jobtap.h>

#include "common/respond.h"
#include "libutil/idmap.h"
#include "jobutil.h"

enum {
    EVENT_NO_COMMIT = 1, // journal only; the KVS eventlog is left alone
    EVENT_COMMITTED = 2, // is in the batch already
};

struct queued_event {
    struct queued_event *next;
    int flags;
    json_t *entry;
};

/* Data a plugin attached to a job.  'plugin' tells whose it is, so that
 * destructors run before the code they lie in is unloaded.
 */
struct job_aux {
    struct job_aux *next;
    flux_plugin_t *plugin;
    char *name;
    void *val;
    flux_free_f free_fn;
};

struct job {
    int refcount;
    flux_jobid_t id;
    uint32_t userid;
    int urgency;
    int64_t priority;
    double t_submit;
    double t_clean;
    int flags;
    flux_job_state_t state;
    const char *queue;      // lies in jobspec
    json_t *jobspec;        // without environment
    json_t *R;              // without scheduling key
    json_t *eventlog;       // array of the entries that go to the KVS
    json_t *posted;         // names of all events so far
    json_t *annotations;
    json_t *deps;           // description: true (open) or false (closed)
    json_t *end_event;      // what made the job enter CLEANUP
    struct queued_event *evq;
    struct job_aux *aux;
    flux_plugin_t **subscribers;
    size_t nsubscribers;
    const flux_msg_t *waiter;

    unsigned int perilog_active;
    bool alloc_queued;      // waits for its alloc request to be sent
    bool alloc_pending;     // alloc request is with the scheduler
    bool alloc_bypass;
    bool has_resources;
    bool start_pending;     // exec has it
    bool started;
    bool free_posted;
    bool depend_posted;
    bool immutable;
    bool readonly;          // no more events
    bool hold;              // events wait for the batch in which it began

    struct jobq *q;         // the queue that it is in, if any
    TAILQ_ENTRY (job) link;
};

/* Jobs by descending priority, then by ID. */
struct jobq {
    TAILQ_HEAD (joblist, job) jobs;
    int count;
};

struct manager {
    flux_t *h;
    uint32_t owner;
    flux_msg_handler_t **requests;
    flux_msg_handler_t **responses;
    struct idmap *active;
    struct idmap *inactive;
    flux_jobid_t max_jobid;
    int running_jobs;

    struct event *event;
    struct jobtap *jobtap;
    struct alloc *alloc;
    struct jobq *sent;      // alloc requests that are with the scheduler
    struct queues *queues;
    char *start_topic;      // of the execution service, or NULL without one
    const flux_msg_t *exec_hello;
    struct flux_msglist *journal; // requests for events
    struct waiters *waiters;
};

typedef void handler (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg);

/* job.c */
struct job *job_create (flux_jobid_t id);
struct job *job_from_submit (json_t *o);
int job_parse_queue (json_t *jobspec, const char **queue);
struct job *job_incref (struct job *job);
void job_decref (void *job);
struct job *job_find (struct manager *jm, flux_jobid_t id); // either map
/* The jobs of a map in the order of their IDs.  The body may take jobs out. */
#define each_job(job, map)                                                    \
    for (flux_jobid_t id_ = 0;                                                \
         (job = idmap_next (map, id_)) && (id_ = job->id) != 0;)
/* An active job, or NULL with ENOENT and a text that says why. */
struct job *job_find_active (struct manager *jm, flux_jobid_t id,
                             const char **errstr);
int job_set_flag (struct job *job, const char *flag);
int job_open_deps (struct job *job);
int job_jobspec_update (struct job *job, json_t *updates);
bool updates_valid (json_t *updates);
bool job_event_queued (struct job *job, const char *name);
void job_aux_clear (struct job *job, flux_plugin_t *only);
void job_unsubscribe (struct job *job, flux_plugin_t *p);
int job_annotate (struct job *job, const char *key, json_t *patch);
void jobq_insert (struct jobq *q, struct job *job);
void jobq_remove (struct job *job);
int job_cmp_priority (struct job *a, struct job *b); // <0: a comes first

/* event.c: post events, commit them (RFC 21) */
struct event_ops { // what follows from an event: act.c
    void (*applied) (struct manager *jm, struct job *job, json_t *entry,
                     flux_job_state_t old_state);
    int (*act) (struct manager *jm, struct job *job);
};
extern const struct event_ops act_ops;
struct event *event_create (struct manager *jm, const struct event_ops *ops);
void event_destroy (struct event *ev);
int event_post (struct manager *jm, struct job *job, int flags,
                const char *name, const char *fmt, ...);
int event_vpost (struct manager *jm, struct job *job, int flags,
                 const char *name, const char *fmt, va_list ap);
int event_post_entry (struct manager *jm, struct job *job, int flags,
                      json_t *entry);
int event_action (struct manager *jm, struct job *job);
/* Post an event that is put into the present batch now but handled, like all
 * later ones of the job, only when that is in the KVS.
 */
int event_post_held (struct manager *jm, struct job *job, const char *name);
/* Send a response once the current batch is in the KVS. */
int event_respond (struct manager *jm, flux_msg_t *response);

/* state.c */
int job_apply_event (struct job *job, json_t *entry);

/* jobtap.c */
struct jobtap *jobtap_create (struct manager *jm);
void jobtap_destroy (struct jobtap *jt);
int jobtap_configure (struct jobtap *jt, const flux_conf_t *conf,
                      flux_error_t *error);
int jobtap_call (struct manager *jm, struct job *job, const char *topic,
                 const char *fmt, ...);
int jobtap_call_early (struct manager *jm, struct job *job,
                       const char *topic, json_t *jobspec,
                       flux_error_t *error);
int jobtap_check_dependencies (struct manager *jm, struct job *job,
                               bool raise, flux_error_t *error);
int jobtap_get_priority (struct manager *jm, struct job *job,
                         int64_t *priority);
int jobtap_notify (struct manager *jm, struct job *job, const char *name,
                   json_t *entry);
struct job_update { // what job.update.KEY callbacks asked for
    bool validate;
    bool feasibility;
    json_t *extra;
};
int jobtap_job_update (struct manager *jm, struct job *job,
                       struct flux_msg_cred cred, const char *key,
                       json_t *value, struct job_update *up,
                       flux_error_t *error);
handler jobtap_request, jobtap_query_request;

/* alloc.c, priority.c */
handler sched_hello_request, sched_ready_request, alloc_query_request;
handler alloc_response;
struct alloc *alloc_create (struct manager *jm);
void alloc_destroy (struct alloc *alloc);
int alloc_enqueue (struct manager *jm, struct job *job);
void alloc_dequeue (struct manager *jm, struct job *job);
void alloc_cancel (struct manager *jm, struct job *job, bool finalize);
void alloc_recalc (struct manager *jm);
void alloc_reorder (struct manager *jm, struct job *job);
void alloc_resort (struct manager *jm);
int alloc_free (struct manager *jm, struct job *job);
bool alloc_online (struct manager *jm);
void alloc_disconnect (struct manager *jm, const flux_msg_t *msg);
int reprioritize_job (struct manager *jm, struct job *job, int64_t priority);
typedef int (*get_priority_f) (struct manager *jm, struct job *job,
                               int64_t *priority);
int reprioritize_all (struct manager *jm, get_priority_f get_priority);

/* start.c */
handler exec_hello_request, start_response;
void start_forget (struct manager *jm); // the execution service
int start_request (struct manager *jm, struct job *job);
/* Tell the exec service of a resource-update event. */
int start_send_expiration (struct manager *jm, struct job *job, json_t *context);
void start_disconnect (struct manager *jm, const flux_msg_t *msg);

/* journal.c */
handler journal_request, journal_cancel_request;
void journal_end (struct manager *jm);
void journal_event (struct manager *jm, struct job *job, const char *name,
                    json_t *entry);

/* wait.c: job waits, drain, idle */
handler wait_request, drain_request;
struct waiters *waiters_create (struct manager *jm);
void waiters_destroy (struct waiters *w);
void wait_job_active (struct manager *jm, struct job *job);
void wait_job_inactive (struct manager *jm, struct job *job);
void wait_check_idle (struct manager *jm);
void wait_disconnect (struct manager *jm, const flux_msg_t *msg);

/* queue.c */
struct queues *queues_create (struct manager *jm);
void queues_destroy (struct queues *queues);
int queues_configure (struct queues *queues, const flux_conf_t *conf,
                      flux_error_t *error);
json_t *queues_save (struct queues *queues);
bool queue_started (struct manager *jm, struct job *job);
int queue_submit_check (struct manager *jm, json_t *jobspec,
                        flux_error_t *error);

/* publish.c */
int raise_exception (struct manager *jm, struct job *job, const char *type,
                     int severity, uint32_t userid, const char *note,
                     int wait_status);
int annotate_and_publish (struct manager *jm, struct job *job,
                          json_t *patch);
void annotations_drop (struct manager *jm, struct job *job, const char *key);

/* requests.c */
int manager_configure (struct manager *jm, const flux_conf_t *conf,
                       flux_error_t *error);
int request_handlers_add (struct manager *jm); // those of all parts

/* queue_requests.c */
handler queue_start_request, queue_list_request, queue_status_request;
void queues_restore (struct queues *queues, json_t *saved);

/* checkpoint.c: '*queues' is what queues_save () gave, for the caller to decref,
 * or NULL.
 */
int checkpoint_save (struct manager *jm);
int checkpoint_load (struct manager *jm, json_t **queues);

/* submit.c, update.c, restart.c */
handler submit_request, update_request;
int restart_from_kvs (struct manager *jm);

/* builtins.c: plugins that are part of the job manager */
struct builtin {
    const char *name;
    flux_plugin_init_f init;
};
extern const struct builtin jobtap_builtins[]; // ends with a NULL name
int limit_job_size_plugin_init (flux_plugin_t *p);
int limit_duration_plugin_init (flux_plugin_t *p);

#endif

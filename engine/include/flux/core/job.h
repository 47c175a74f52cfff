/* SPDX-License-Identifier: LGPL-3.0-only */
/* job.h - jobs and version 1 jobspecs. */
#ifndef SOLO_FLUX_JOB_H
#define SOLO_FLUX_JOB_H

#include "future.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t flux_jobid_t;
#define FLUX_JOBID_ANY 0xffffffffffffffff

enum job_submit_flags {
    FLUX_JOB_PRE_SIGNED = 1,
    FLUX_JOB_DEBUG = 2,
    FLUX_JOB_WAITABLE = 4,
    FLUX_JOB_NOVALIDATE = 8,
};

enum job_event_watch_flags {
    FLUX_JOB_EVENT_WATCH_WAITCREATE = 1,
    FLUX_JOB_EVENT_WATCH_INITIAL_SENTINEL = 2,
};

enum job_lookup_flags {
    FLUX_JOB_LOOKUP_JSON_DECODE = 1,
    FLUX_JOB_LOOKUP_CURRENT = 2,
};

enum job_urgency {
    FLUX_JOB_URGENCY_MIN = 0,
    FLUX_JOB_URGENCY_HOLD = 0,
    FLUX_JOB_URGENCY_DEFAULT = 16,
    FLUX_JOB_URGENCY_MAX = 31,
    FLUX_JOB_URGENCY_EXPEDITE = 31,
};

enum job_queue_priority {
    FLUX_JOB_PRIORITY_MIN = 0,
    FLUX_JOB_PRIORITY_MAX = 4294967295,
};

typedef enum {
    FLUX_JOB_STATE_NEW = 1,
    FLUX_JOB_STATE_DEPEND = 2,
    FLUX_JOB_STATE_PRIORITY = 4,
    FLUX_JOB_STATE_SCHED = 8,
    FLUX_JOB_STATE_RUN = 16,
    FLUX_JOB_STATE_CLEANUP = 32,
    FLUX_JOB_STATE_INACTIVE = 64,
} flux_job_state_t;
#define FLUX_JOB_NR_STATES 7

/* Unions of states. */
enum {
    FLUX_JOB_STATE_PENDING = 14,
    FLUX_JOB_STATE_RUNNING = 48,
    FLUX_JOB_STATE_ACTIVE = 62,
};

typedef enum {
    FLUX_JOB_RESULT_COMPLETED = 1,
    FLUX_JOB_RESULT_FAILED = 2,
    FLUX_JOB_RESULT_CANCELED = 4,
    FLUX_JOB_RESULT_TIMEOUT = 8,
} flux_job_result_t;

/* Names of things. */
int flux_job_id_parse (const char *s, flux_jobid_t *id);
int flux_job_id_encode (flux_jobid_t id, const char *type,
                        char *buf, size_t bufsz);
const char *flux_job_statetostr (flux_job_state_t state, const char *fmt);
int flux_job_strtostate (const char *s, flux_job_state_t *state);
const char *flux_job_resulttostr (flux_job_result_t result, const char *fmt);
int flux_job_strtoresult (const char *s, flux_job_result_t *result);
int flux_job_kvs_key (char *buf, int bufsz, flux_jobid_t id, const char *key);
int flux_job_kvs_guest_key (char *buf, int bufsz, flux_jobid_t id,
                            const char *key);
int flux_job_kvs_namespace (char *buf, int bufsz, flux_jobid_t id);
int flux_job_waitstatus_to_exitcode (int waitstatus, flux_error_t *errp);
char *flux_unwrap_string (const char *in, bool verify, uint32_t *userid,
                          flux_error_t *error);

/* Submit and wait. */
flux_future_t *flux_job_submit (flux_t *h, const char *jobspec, int urgency,
                                int flags);
int flux_job_submit_get_id (flux_future_t *f, flux_jobid_t *id);
flux_future_t *flux_job_wait (flux_t *h, flux_jobid_t id);
int flux_job_wait_get_status (flux_future_t *f, bool *success,
                              const char **errstr);
int flux_job_wait_get_id (flux_future_t *f, flux_jobid_t *id);
flux_future_t *flux_job_event_watch (flux_t *h, flux_jobid_t id,
                                     const char *path, int flags);
int flux_job_event_watch_get (flux_future_t *f, const char **event);
int flux_job_event_watch_cancel (flux_future_t *f);

/* Query and control. */
flux_future_t *flux_job_raise (flux_t *h, flux_jobid_t id, const char *type,
                               int severity, const char *note);
flux_future_t *flux_job_cancel (flux_t *h, flux_jobid_t id, const char *reason);
flux_future_t *flux_job_kill (flux_t *h, flux_jobid_t id, int signum);

/* What became of a job; waits for its end. */
flux_future_t *flux_job_result (flux_t *h, flux_jobid_t id, int flags);
int flux_job_result_get (flux_future_t *f, const char **json_str);

/* Jobspec, version 1. */
typedef struct flux_jobspec1 flux_jobspec1_t;
typedef flux_error_t flux_jobspec1_error_t;

flux_jobspec1_t *flux_jobspec1_decode (const char *s,
                                       flux_jobspec1_error_t *error);
void flux_jobspec1_destroy (flux_jobspec1_t *jobspec);
int flux_jobspec1_check (flux_jobspec1_t *jobspec,
                         flux_jobspec1_error_t *error);
int flux_jobspec1_attr_check (flux_jobspec1_t *jobspec,
                              flux_jobspec1_error_t *error);

#ifdef __cplusplus
}
#endif
#endif

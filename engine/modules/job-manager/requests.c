/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Requests that concern jobs here and now: raise, kill, urgency, memo, getattr
 * of one, raiseall of many; what the service knows of itself; and the table of
 * the requests to all parts.
 */
#include <ctype.h>
#include <signal.h>

#include "manager.h"

/* A request about one job. A method fails with errno, and may say more in error.
 */
struct request {
    struct manager *jm;
    const flux_msg_t *msg;
    struct flux_msg_cred sender;
    flux_jobid_t id;
    struct job *job;
    json_t *answer;             // or NULL: there is nothing to say
    flux_error_t error;
};

static int refuse (struct request *rq, int errnum, const char *why)
{
    errno = errnum;
    return set_error (&rq->error, "%s", why);
}

/* Guests have no business with the jobs of others.
 */
static int check_owner (struct flux_msg_cred sender,
                        uint32_t owner,
                        const char *deed,
                        flux_error_t *error)
{
    if (flux_msg_cred_authorize (sender, owner) == 0)
        return 0;
    return set_error (error, "guests may only %s their own jobs", deed);
}

/* The job is active, and the sender's or any for the owner of the instance.
 * Else errno is missing, or EPERM.
 */
static int want_job (struct request *rq, int missing, const char *deed)
{
    const char *why;

    if (!(rq->job = job_find_active (rq->jm, rq->id, &why)))
        return refuse (rq, missing, why);
    return check_owner (rq->sender, rq->job->userid, deed, &rq->error);
}

static int check_exception (int severity, const char *type, flux_error_t *error)
{
    bool sound = *type != '\0';

    for (const char *c = type; *c; c++)
        sound = sound && *c != '=' && !isspace ((unsigned char)*c);
    if (sound && severity >= 0 && severity <= 7)
        return 0;
    errno = EPROTO;
    return set_error (error, "invalid exception %s", sound ? "severity" : "type");
}

static int raise_job (struct request *rq)
{
    int status = -1;
    int severity;
    const char *note = NULL;
    const char *type;

    if (flux_request_unpack (rq->msg,
                             NULL,
                             "{s:s s:i s?i s?s}",
                             "type", &type,
                             "severity", &severity,
                             "wait_status", &status,
                             "note", &note) < 0
        || check_exception (severity, type, &rq->error) < 0
        || want_job (rq, ENOENT, "raise exceptions on") < 0)
        return -1;
    return raise_exception (rq->jm,
                            rq->job,
                            type,
                            severity,
                            rq->sender.userid,
                            note,
                            status);
}

/* The job shell listens for shell-ID.kill.
 */
static int kill_job (struct request *rq)
{
    char topic[64];
    flux_future_t *f;
    int signum;

    if (flux_request_unpack (rq->msg, NULL, "{s:i}", "signum", &signum) < 0)
        return -1;
    if (signum < 1 || signum >= NSIG)
        return refuse (rq, EINVAL, "Invalid signal number");
    if (want_job (rq, EINVAL, "send signals to") < 0)
        return -1;
    if (!(rq->job->state & FLUX_JOB_STATE_RUNNING))
        return refuse (rq, EINVAL, "job is not running");
    snprintf (topic, sizeof (topic), "shell-%ju.kill", (uintmax_t)rq->id);
    f = flux_event_publish_pack (rq->jm->h, topic, 0, "{s:i}", "signum", signum);
    flux_future_destroy (f);
    return f ? 0 : -1;
}

/* A guest may give his job less than it has, or at most what is usual.
 */
static int urgency_job (struct request *rq)
{
    int urgency;
    int old;

    if (flux_request_unpack (rq->msg, NULL, "{s:i}", "urgency", &urgency) < 0)
        return -1;
    if (urgency < FLUX_JOB_URGENCY_MIN || urgency > FLUX_JOB_URGENCY_MAX)
        return refuse (rq, EINVAL, "no such urgency: there are 0 to 31");
    if (want_job (rq, EINVAL, "reprioritize") < 0)
        return -1;
    old = rq->job->urgency;
    if (urgency > FLUX_JOB_URGENCY_DEFAULT
        && urgency > old
        && !(rq->sender.rolemask & FLUX_ROLE_OWNER))
        return refuse (rq, EPERM, "guests can only adjust urgency <= default");
    if (rq->job->has_resources)
        return refuse (rq, EINVAL, "too late for that: the job has resources");
    if (event_post (rq->jm,
                    rq->job,
                    0,
                    "urgency",
                    "{s:I s:i}",
                    "userid", (json_int_t)rq->sender.userid,
                    "urgency", urgency) < 0)
        return -1;
    rq->answer = json_pack ("{s:i}", "old_urgency", old);
    return 0;
}

static int memo_job (struct request *rq)
{
    json_t *memo;
    int brief = 0;

    if (flux_request_unpack (rq->msg,
                             NULL,
                             "{s:o s?b}",
                             "memo", &memo,
                             "volatile", &brief) < 0
        || want_job (rq, ENOENT, "add a memo to") < 0)
        return -1;
    return event_post (rq->jm,
                       rq->job,
                       brief ? EVENT_NO_COMMIT : 0,
                       "memo",
                       "O", memo);
}

/* Borrowed, or NULL.
 */
static json_t *get_attr (struct job *job, const char *name)
{
    if (streq (name, "R"))
        return job->R;
    if (streq (name, "eventlog"))
        return job->eventlog;
    return streq (name, "jobspec") ? job->jobspec : NULL;
}

/* Also of a job that is over.
 */
static int getattr_job (struct request *rq)
{
    json_t *names;
    size_t i;
    json_t *name;

    if (flux_request_unpack (rq->msg, NULL, "{s:o}", "attrs", &names) < 0)
        return -1;
    if (!(rq->job = job_find (rq->jm, rq->id)))
        return refuse (rq, EINVAL, "unknown job");
    if (check_owner (rq->sender, rq->job->userid, "read", &rq->error) < 0)
        return -1;
    rq->answer = json_object ();
    json_array_foreach (names, i, name) {
        const char *s = json_string_value (name);
        json_t *value;

        if (!s)
            return refuse (rq, EPROTO, "names of attributes are strings");
        if (!(value = get_attr (rq->job, s))) {
            errno = ENOENT;
            return set_error (&rq->error, "the job has no attribute %s", s);
        }
        json_object_set (rq->answer, s, value);
    }
    return 0;
}

static const struct {
    const char *topic;
    int (*run) (struct request *rq);
} methods[] = {
    { "job-manager.raise", raise_job },
    { "job-manager.kill", kill_job },
    { "job-manager.urgency", urgency_job },
    { "job-manager.memo", memo_job },
    { "job-manager.getattr", getattr_job },
};

static void job_cb (flux_t *h, flux_msg_handler_t *mh,
                    const flux_msg_t *msg, void *arg)
{
    struct request rq = { .jm = arg, .msg = msg };
    const char *topic;
    size_t i = 0;

    if (flux_request_unpack (msg, &topic, "{s:I}", "id", &rq.id) < 0
        || flux_msg_get_cred (msg, &rq.sender) < 0)
        goto error;
    while (!streq (methods[i].topic, topic))
        i++;
    if (methods[i].run (&rq) < 0)
        goto error;
    if (rq.answer)
        respond_pack (h, msg, "o", rq.answer);
    else
        respond_ok (h, msg);
    return;
error:
    respond_error (h, msg, rq.error.text);
    json_decref (rq.answer);
}

static void raiseall_cb (flux_t *h, flux_msg_handler_t *mh,
                         const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    flux_error_t error = { .text = "" };
    struct flux_msg_cred sender;
    json_int_t owner;
    int states;
    int severity;
    const char *note = NULL;
    const char *type;
    int dry_run;
    struct job *job;
    int count = 0;
    int errors = 0;

    if (flux_msg_get_cred (msg, &sender) < 0
        || flux_request_unpack (msg,
                                NULL,
                                "{s:I s:i s:i s?s s:s s:b}",
                                "userid", &owner,
                                "states", &states,
                                "severity", &severity,
                                "note", &note,
                                "type", &type,
                                "dry_run", &dry_run) < 0
        || check_owner (sender, owner, "raise exceptions on", &error) < 0
        || check_exception (severity, type, &error) < 0) {
        respond_error (h, msg, error.text);
        return;
    }
    each_job (job, jm->active) {
        if (!(job->state & states)
            || ((uint32_t)owner != FLUX_USERID_UNKNOWN && owner != job->userid))
            continue;
        count++;
        if (!dry_run
            && raise_exception (jm, job, type, severity, sender.userid, note, -1)
               < 0)
            errors++;
    }
    respond_pack (h, msg, "{s:i s:i}", "errors", errors, "count", count);
}

static void getinfo_cb (flux_t *h, flux_msg_handler_t *mh,
                        const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;

    respond_pack (h, msg, "{s:I}", "max_jobid", jm->max_jobid);
}

static void stats_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;

    respond_pack (h, msg, "{s:i s:i s:I s:{s:{}}}",
                  "active_jobs", (int)idmap_count (jm->active),
                  "inactive_jobs", (int)idmap_count (jm->inactive),
                  "max_jobid", jm->max_jobid,
                  "housekeeping", "running");
}

/* Answer with the R of each job; the resource module adds these up. */
static void resource_status_cb (flux_t *h, flux_msg_handler_t *mh,
                                const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    json_t *allocated = json_array ();
    struct job *job;

    each_job (job, jm->active) {
        if (job->has_resources && job->R && !job->alloc_bypass)
            json_array_append (allocated, job->R);
    }
    respond_pack (h, msg, "{s:o}", "allocated", allocated);
}

int manager_configure (struct manager *jm, const flux_conf_t *conf,
                       flux_error_t *error)
{
    if (queues_configure (jm->queues, conf, error) < 0
        || jobtap_configure (jm->jobtap, conf, error) < 0)
        return -1;
    return 0;
}

static void reload_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    flux_conf_t *conf;
    flux_error_t error;

    error.text[0] = '\0';
    if (flux_module_config_request_decode (msg, &conf) < 0)
        goto error;
    errno = EINVAL;
    if (manager_configure (jm, conf, &error) < 0
        || flux_set_conf_new (h, conf) < 0) {
        flux_conf_decref (conf);
        goto error;
    }
    respond_ok (h, msg);
    return;
error:
    respond_error (h, msg, error.text);
}

static void disconnect_cb (flux_t *h, flux_msg_handler_t *mh,
                           const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;

    alloc_disconnect (jm, msg);
    start_disconnect (jm, msg);
    wait_disconnect (jm, msg);
    (void)flux_msglist_disconnect (jm->journal, msg);
}

enum { OWNER = 0, USER = FLUX_ROLE_USER };

static const struct flux_msg_handler_spec requests[] = { // job-manager.*
    { FLUX_MSGTYPE_REQUEST, "alloc-query", alloc_query_request, USER },
    { FLUX_MSGTYPE_REQUEST, "config-reload", reload_cb, OWNER },
    { FLUX_MSGTYPE_REQUEST, "disconnect", disconnect_cb, USER },
    { FLUX_MSGTYPE_REQUEST, "drain", drain_request, OWNER },
    { FLUX_MSGTYPE_REQUEST, "events-journal", journal_request, OWNER },
    { FLUX_MSGTYPE_REQUEST, "events-journal-cancel", journal_cancel_request,
      OWNER },
    { FLUX_MSGTYPE_REQUEST, "exec-hello", exec_hello_request, OWNER },
    { FLUX_MSGTYPE_REQUEST, "getattr", job_cb, USER },
    { FLUX_MSGTYPE_REQUEST, "getinfo", getinfo_cb, USER },
    { FLUX_MSGTYPE_REQUEST, "idle", drain_request, OWNER },
    { FLUX_MSGTYPE_REQUEST, "jobtap", jobtap_request, OWNER },
    { FLUX_MSGTYPE_REQUEST, "jobtap-query", jobtap_query_request, OWNER },
    { FLUX_MSGTYPE_REQUEST, "kill", job_cb, USER },
    { FLUX_MSGTYPE_REQUEST, "memo", job_cb, USER },
    { FLUX_MSGTYPE_REQUEST, "queue-list", queue_list_request, USER },
    { FLUX_MSGTYPE_REQUEST, "queue-start", queue_start_request, OWNER },
    { FLUX_MSGTYPE_REQUEST, "queue-status", queue_status_request, USER },
    { FLUX_MSGTYPE_REQUEST, "raise", job_cb, USER },
    { FLUX_MSGTYPE_REQUEST, "raiseall", raiseall_cb, USER },
    { FLUX_MSGTYPE_REQUEST, "resource-status", resource_status_cb, OWNER },
    { FLUX_MSGTYPE_REQUEST, "sched-hello", sched_hello_request, OWNER },
    { FLUX_MSGTYPE_REQUEST, "sched-ready", sched_ready_request, OWNER },
    { FLUX_MSGTYPE_REQUEST, "stats-get", stats_cb, USER },
    { FLUX_MSGTYPE_REQUEST, "submit", submit_request, OWNER },
    { FLUX_MSGTYPE_REQUEST, "update", update_request, USER },
    { FLUX_MSGTYPE_REQUEST, "urgency", job_cb, USER },
    { FLUX_MSGTYPE_REQUEST, "wait", wait_request, OWNER },
    FLUX_MSGHANDLER_TABLE_END,
};

static const struct flux_msg_handler_spec responses[] = {
    { FLUX_MSGTYPE_RESPONSE, "sched.alloc", alloc_response, OWNER },
    { FLUX_MSGTYPE_RESPONSE, "*.start", start_response, OWNER },
    FLUX_MSGHANDLER_TABLE_END,
};

int request_handlers_add (struct manager *jm)
{
    return flux_msg_handler_addvec_ex (jm->h, "job-manager", requests, jm,
                                       &jm->requests) < 0
        || flux_msg_handler_addvec (jm->h, responses, jm, &jm->responses) < 0
           ? -1 : 0;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Requests that concern a job here and now: raise, kill,
 * urgency, memo, getattr.
 */
#include <ctype.h>
#include <signal.h>

#include "manager.h"

static const char *check_exception (int severity, const char *type)
{
    errno = EPROTO;
    if (severity < 0 || severity > 7)
        return "invalid exception severity";
    if (*type == '\0')
        return "invalid exception type";
    for (; *type; type++) {
        if (isspace ((unsigned char)*type) || *type == '=')
            return "invalid exception type";
    }
    return NULL;
}

static void raise_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct flux_msg_cred cred;
    const char *errstr = NULL;
    flux_jobid_t id;
    struct job *job;
    int severity;
    const char *type;
    const char *note = NULL;
    int wait_status = -1;

    if (flux_request_unpack (msg, NULL, "{s:I s:i s:s s?s s?i}",
                             "id", &id,
                             "severity", &severity,
                             "type", &type,
                             "note", &note,
                             "wait_status", &wait_status) < 0
        || flux_msg_get_cred (msg, &cred) < 0
        || (errstr = check_exception (severity, type))
        || !(job = job_find_active (jm, id, &errstr)))
        goto error;
    if (flux_msg_cred_authorize (cred, job->userid) < 0) {
        errstr = "guests can only raise exceptions on their own jobs";
        goto error;
    }
    if (raise_exception (jm, job, type, severity, cred.userid, note,
                         wait_status) < 0)
        goto error;
    respond_ok (h, msg);
    return;
error:
    respond_error (h, msg, errstr);
}

/* Jobs of a user (or all) in given states, each with a reference. */
static struct job **select_jobs (struct manager *jm, uint32_t userid,
                                 int states, size_t *countp)
{
    size_t count;
    struct job **jobs = (struct job **)idmap_values (jm->active, &count);
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        struct job *job = jobs[i];

        if ((job->state & states)
            && (userid == FLUX_USERID_UNKNOWN || userid == job->userid))
            jobs[n++] = job_incref (job);
    }
    *countp = n;
    return jobs;
}

static void raiseall_cb (flux_t *h, flux_msg_handler_t *mh,
                         const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct flux_msg_cred cred;
    const char *errstr = NULL;
    int dry_run;
    json_int_t userid;
    int states;
    int severity;
    const char *type;
    const char *note = NULL;
    struct job **jobs;
    size_t count;
    int errors = 0;

    if (flux_request_unpack (msg, NULL, "{s:b s:I s:i s:i s:s s?s}",
                             "dry_run", &dry_run,
                             "userid", &userid,
                             "states", &states,
                             "severity", &severity,
                             "type", &type,
                             "note", &note) < 0
        || flux_msg_get_cred (msg, &cred) < 0)
        goto error;
    if (flux_msg_cred_authorize (cred, (uint32_t)userid) < 0) {
        errstr = "guests can only raise exceptions on their own jobs";
        goto error;
    }
    if ((errstr = check_exception (severity, type)))
        goto error;
    jobs = select_jobs (jm, (uint32_t)userid, states, &count);
    for (size_t i = 0; i < count; i++) {
        if (!dry_run
            && raise_exception (jm, jobs[i], type, severity, cred.userid,
                                note, -1) < 0)
            errors++;
        job_decref (jobs[i]);
    }
    free (jobs);
    respond_pack (h, msg, "{s:i s:i}",
                  "count", (int)count,
                  "errors", errors);
    return;
error:
    respond_error (h, msg, errstr);
}

/* The job shell listens for shell-ID.kill. */
static int publish_kill (flux_t *h, flux_jobid_t id, int signum)
{
    flux_future_t *f;
    char topic[64];

    snprintf (topic, sizeof (topic), "shell-%ju.kill", (uintmax_t)id);
    if (!(f = flux_event_publish_pack (h, topic, 0, "{s:i}",
                                       "signum", signum)))
        return -1;
    flux_future_destroy (f);
    return 0;
}

static void kill_cb (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    const char *errstr = NULL;
    flux_jobid_t id;
    struct job *job;
    int signum;

    if (flux_request_unpack (msg, NULL, "{s:I s:i}",
                             "id", &id,
                             "signum", &signum) < 0)
        goto error;
    errno = EINVAL;
    if (signum <= 0 || signum >= NSIG) {
        errstr = "Invalid signal number";
        goto error;
    }
    if (!(job = job_find_active (jm, id, &errstr))) {
        errno = EINVAL;
        goto error;
    }
    if (flux_msg_authorize (msg, job->userid) < 0) {
        errstr = "guests may only send signals to their own jobs";
        goto error;
    }
    if (!(job->state & FLUX_JOB_STATE_RUNNING)) {
        errstr = "job is not running";
        errno = EINVAL;
        goto error;
    }
    if (publish_kill (h, id, signum) < 0)
        goto error;
    respond_ok (h, msg);
    return;
error:
    respond_error (h, msg, errstr);
}

static void urgency_cb (flux_t *h, flux_msg_handler_t *mh,
                        const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct flux_msg_cred cred;
    const char *errstr = NULL;
    flux_jobid_t id;
    struct job *job;
    int urgency;
    int old;
    int limit;

    if (flux_request_unpack (msg, NULL, "{s:I s:i}",
                             "id", &id,
                             "urgency", &urgency) < 0
        || flux_msg_get_cred (msg, &cred) < 0)
        goto error;
    errno = EINVAL;
    if (urgency < FLUX_JOB_URGENCY_MIN || urgency > FLUX_JOB_URGENCY_MAX) {
        errstr = "urgency value is out of range";
        goto error;
    }
    if (!(job = job_find_active (jm, id, &errstr))) {
        errno = EINVAL;
        if (errstr && streq (errstr, "unknown job id"))
            errstr = "unknown job";
        goto error;
    }
    if (flux_msg_cred_authorize (cred, job->userid) < 0) {
        errstr = "guests can only reprioritize their own jobs";
        goto error;
    }
    limit = job->urgency > FLUX_JOB_URGENCY_DEFAULT
        ? job->urgency : FLUX_JOB_URGENCY_DEFAULT;
    if (!(cred.rolemask & FLUX_ROLE_OWNER) && urgency > limit) {
        errstr = "guests can only adjust urgency <= default";
        errno = EPERM;
        goto error;
    }
    if (job->has_resources) {
        errstr = "urgency cannot be changed once resources are allocated";
        errno = EINVAL;
        goto error;
    }
    old = job->urgency;
    if (event_post (jm, job, 0, "urgency", "{s:I s:i}",
                    "userid", (json_int_t)cred.userid,
                    "urgency", urgency) < 0)
        goto error;
    respond_pack (h, msg, "{s:i}", "old_urgency", old);
    return;
error:
    respond_error (h, msg, errstr);
}

static void memo_cb (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    const char *errstr = NULL;
    flux_jobid_t id;
    struct job *job;
    int volat = 0;
    json_t *memo;

    if (flux_request_unpack (msg, NULL, "{s:I s?b s:o}",
                             "id", &id,
                             "volatile", &volat,
                             "memo", &memo) < 0
        || !(job = job_find_active (jm, id, &errstr)))
        goto error;
    if (flux_msg_authorize (msg, job->userid) < 0) {
        errstr = "guests can only add a memo to their own jobs";
        goto error;
    }
    if (event_post (jm, job, volat ? EVENT_NO_COMMIT : 0, "memo",
                    "O", memo) < 0)
        goto error;
    respond_ok (h, msg);
    return;
error:
    respond_error (h, msg, errstr);
}

static json_t *make_attrs (struct job *job, json_t *attrs,
                           flux_error_t *error)
{
    json_t *dict = json_object ();
    size_t index;
    json_t *attr;

    json_array_foreach (attrs, index, attr) {
        const char *key = json_string_value (attr);
        json_t *val = NULL;

        if (!key) {
            set_error (error, "attribute list contains non-string");
            errno = EPROTO;
            goto error;
        }
        if (streq (key, "jobspec"))
            val = job->jobspec;
        else if (streq (key, "R")) {
            if (!(val = job->R))
                set_error (error, "R is NULL");
        }
        else if (streq (key, "eventlog"))
            val = job->eventlog;
        else
            set_error (error, "unknown attr %s", key);
        if (!val) {
            errno = ENOENT;
            goto error;
        }
        json_object_set (dict, key, val);
    }
    return dict;
error:
    json_decref (dict);
    return NULL;
}

static void getattr_cb (flux_t *h, flux_msg_handler_t *mh,
                        const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    flux_error_t error;
    flux_jobid_t id;
    struct job *job;
    json_t *attrs;
    json_t *dict;

    error.text[0] = '\0';
    if (flux_request_unpack (msg, NULL, "{s:I s:o}",
                             "id", &id,
                             "attrs", &attrs) < 0)
        goto error;
    if (!(job = job_find (jm, id))) {
        set_error (&error, "unknown job");
        errno = EINVAL;
        goto error;
    }
    if (flux_msg_authorize (msg, job->userid) < 0) {
        set_error (&error, "guests can only access their own jobs");
        goto error;
    }
    if (!(dict = make_attrs (job, attrs, &error)))
        goto error;
    respond_pack (h, msg, "o", dict);
    return;
error:
    respond_error (h, msg, error.text);
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

static void disconnect_cb (flux_t *h, flux_msg_handler_t *mh,
                           const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;

    alloc_disconnect (jm, msg);
    start_disconnect (jm, msg);
    wait_disconnect (jm, msg);
    journal_disconnect (jm, msg);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "job-manager.raise", raise_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-manager.raiseall", raiseall_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-manager.kill", kill_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-manager.urgency", urgency_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-manager.memo", memo_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-manager.getattr", getattr_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-manager.getinfo", getinfo_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-manager.stats-get", stats_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-manager.resource-status",
      allocated_request, 0 },
    { FLUX_MSGTYPE_REQUEST, "job-manager.submit", submit_request, 0 },
    { FLUX_MSGTYPE_REQUEST, "job-manager.jobtap", jobtap_request, 0 },
    { FLUX_MSGTYPE_REQUEST, "job-manager.jobtap-query",
      jobtap_query_request, 0 },
    { FLUX_MSGTYPE_REQUEST, "job-manager.disconnect", disconnect_cb,
      FLUX_ROLE_USER },
    FLUX_MSGHANDLER_TABLE_END,
};

int request_handlers_add (struct manager *jm)
{
    return flux_msg_handler_addvec (jm->h, htab, jm, &jm->handlers);
}

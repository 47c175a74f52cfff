/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The job-list module: follows the job manager's journal and answers what
 * jobs there are.  Requests that come before the backlog is through wait.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job-list.h"

struct list {
    flux_t *h;
    flux_future_t *journal;
    struct idmap *jobs;
    bool ready;
    struct flux_msglist *deferred;  // until ready
    struct flux_msglist *waiting;   // list-id for a state to come
};

static const char *attr_names[] = {
    // as it was submitted
    "name", "userid", "urgency", "queue", "bank", "project", "cwd", "duration",
    "ntasks", "ncores", "dependencies",
    // as it is
    "state", "priority", "annotations",
    // where it runs
    "nnodes", "nodelist", "ranks", "expiration",
    // when it was where
    "t_submit", "t_depend", "t_priority", "t_sched", "t_run", "t_cleanup",
    "t_inactive",
    // how it has ended
    "result", "waitstatus", "success", "exception_occurred",
    "exception_severity", "exception_type", "exception_note", NULL
};

static bool is_attr (const char *key)
{
    for (const char **s = attr_names; *s; s++) {
        if (streq (*s, key))
            return true;
    }
    return false;
}

static json_t *job_to_json (struct job *job, json_t *attrs,
                            flux_error_t *error)
{
    json_t *o = json_pack ("{s:I}", "id", job->id);
    size_t index;
    json_t *val;

    json_array_foreach (attrs, index, val) {
        const char *key = json_string_value (val);

        errno = EINVAL;
        if (!key) {
            set_error (error, "names of attributes are strings");
            goto error;
        }
        if (streq (key, "all"))
            (void)json_object_update (o, job->attrs);
        else if (!is_attr (key)) {
            set_error (error, "jobs have no attribute %s", key);
            goto error;
        }
        else if ((val = json_object_get (job->attrs, key)))
            (void)json_object_set (o, key, val);
    }
    return o;
error:
    json_decref (o);
    return NULL;
}

static int state_class (struct job *job)
{
    return job->state & FLUX_JOB_STATE_INACTIVE ? 2
         : job->state & FLUX_JOB_STATE_RUNNING ? 1 : 0;
}

/* Pending jobs by priority, then running and inactive ones, latest first */
static int compare (const void *a, const void *b)
{
    struct job *j1 = *(struct job *const *)a;
    struct job *j2 = *(struct job *const *)b;
    int class = state_class (j1);
    double d;

    if (class != state_class (j2))
        return class - state_class (j2);
    d = class == 0 ? (double)(j2->priority - j1->priority)
      : class == 1 ? j2->t_run - j1->t_run
      : j2->t_inactive - j1->t_inactive;
    if (d != 0.)
        return d < 0. ? -1 : 1;
    return j1->id < j2->id ? -1 : j1->id > j2->id;
}

static json_t *list_jobs (struct list *ctx, int max, json_t *attrs,
                          double since, json_t *constraint,
                          flux_error_t *error)
{
    json_t *a = json_array ();
    size_t count;
    struct job **jobs = (struct job **)idmap_values (ctx->jobs, &count);

    qsort (jobs, count, sizeof (*jobs), compare);
    for (size_t i = 0; i < count; i++) {
        struct job *job = jobs[i];
        json_t *o;

        if (job->state == FLUX_JOB_STATE_NEW
            || (job->t_inactive > 0. && job->t_inactive <= since)
            || job_match (job, constraint, error) != 1)
            continue;
        if (!(o = job_to_json (job, attrs, error))) {
            json_decref (a);
            a = NULL;
            break;
        }
        (void)json_array_append_new (a, o);
        if ((int)json_array_size (a) == max)
            break;
    }
    free (jobs);
    return a;
}

static int respond_stream (flux_t *h, const flux_msg_t *msg, json_t *jobs)
{
    size_t index;
    json_t *o;

    json_array_foreach (jobs, index, o) {
        int rc = index == 0
            ? flux_respond_pack (h, msg, "{s:[O] s:i}",
                                 "jobs", o, "version", 1)
            : flux_respond_pack (h, msg, "{s:[O]}", "jobs", o);
        if (rc < 0)
            return -1;
    }
    return flux_respond_error (h, msg, ENODATA, NULL);
}

static void list_request (struct list *ctx, const flux_msg_t *msg)
{
    flux_error_t error;
    flux_error_t e;
    int max;
    json_t *attrs;
    double since = 0.;
    json_t *constraint = NULL;
    json_t *jobs;
    int rc;

    errno = EPROTO;
    if (flux_msg_unpack (msg, "{s:i s:o s?F s?o}",
                         "max_entries", &max,
                         "attrs", &attrs,
                         "since", &since,
                         "constraint", &constraint) < 0) {
        set_error (&error, "malformed request: %s", flux_msg_last_error (msg));
        errno = EPROTO;
        goto error;
    }
    errno = EPROTO;
    if (max < 0)
        set_error (&error, "max_entries is not a number of jobs");
    else if (since < 0.)
        set_error (&error, "since is not a time");
    else if (!json_is_array (attrs))
        set_error (&error, "attrs are not an array");
    else if (job_match (NULL, constraint, &e) < 0)
        set_error (&error, "constraint object invalid: %.100s", e.text);
    else {
        if (!(jobs = list_jobs (ctx, max, attrs, since, constraint, &error)))
            goto error;
        rc = flux_msg_is_streaming (msg)
            ? respond_stream (ctx->h, msg, jobs)
            : flux_respond_pack (ctx->h, msg, "{s:O}", "jobs", jobs);
        if (rc < 0)
            flux_log_error (ctx->h, "cannot answer a request for jobs");
        json_decref (jobs);
        return;
    }
    errno = EPROTO;
error:
    respond_error (ctx->h, msg, error.text);
}

/* Returns true if answered.  A job that went inactive counts as having been
 * in the state that is waited for: it will not be.
 */
static bool list_id_request (struct list *ctx, const flux_msg_t *msg)
{
    flux_error_t error;
    flux_jobid_t id;
    json_t *attrs;
    int state = 0;
    struct job *job;
    json_t *o;

    error.text[0] = '\0';
    errno = EPROTO;
    if (flux_msg_unpack (msg, "{s:I s:o s?i}",
                         "id", &id,
                         "attrs", &attrs,
                         "state", &state) < 0
        || !json_is_array (attrs)) {
        set_error (&error, "invalid payload");
        errno = EPROTO;
        goto error;
    }
    if (state & ~(FLUX_JOB_STATE_ACTIVE | FLUX_JOB_STATE_INACTIVE)) {
        set_error (&error, "no such state");
        errno = EPROTO;
        goto error;
    }
    if (!(job = idmap_get (ctx->jobs, id)))
        goto error;
    if (job->state == FLUX_JOB_STATE_NEW
        || (state
            && job->state != FLUX_JOB_STATE_INACTIVE
            && !(job->states_mask & state)))
        return false;
    if (!(o = job_to_json (job, attrs, &error)))
        goto error;
    respond_pack (ctx->h, msg, "{s:o}", "job", o);
    return true;
error:
    respond_error (ctx->h, msg, error.text[0] ? error.text : NULL);
    return true;
}

static void check_waiting (struct list *ctx)
{
    const flux_msg_t *msg = flux_msglist_first (ctx->waiting);

    while (msg) {
        if (list_id_request (ctx, msg))
            flux_msglist_delete (ctx->waiting);
        msg = flux_msglist_next (ctx->waiting);
    }
}

static void list_attrs_request (struct list *ctx, const flux_msg_t *msg)
{
    json_t *a = json_array ();

    for (const char **s = attr_names; *s; s++)
        (void)json_array_append_new (a, json_string (*s));
    (void)json_array_append_new (a, json_string ("all"));
    respond_pack (ctx->h, msg, "{s:o}", "attrs", a);
}

static void add_to (json_t *o, const char *key, int n)
{
    json_int_t old = json_integer_value (json_object_get (o, key));

    (void)json_object_set_new (o, key, json_integer (old + n));
}

static json_t *stats_new (const char *queue)
{
    json_t *states = json_object ();

    for (int state = FLUX_JOB_STATE_DEPEND;
         state <= FLUX_JOB_STATE_INACTIVE;
         state <<= 1)
        add_to (states, flux_job_statetostr (state, "l"), 0);
    add_to (states, "total", 0);
    return json_pack ("{s:o s:i s:i s:i s:i s:i s:s*}",
                      "job_states", states,
                      "successful", 0,
                      "failed", 0,
                      "canceled", 0,
                      "timeout", 0,
                      "inactive_purged", 0,
                      "name", queue);
}

static void stats_add (json_t *stats, struct job *job)
{
    json_t *states = json_object_get (stats, "job_states");
    int result = json_integer_value (json_object_get (job->attrs, "result"));

    add_to (states, flux_job_statetostr (job->state, "l"), 1);
    add_to (states, "total", 1);
    if (job->state == FLUX_JOB_STATE_INACTIVE)
        add_to (stats, result == FLUX_JOB_RESULT_COMPLETED ? "successful"
                     : result == FLUX_JOB_RESULT_CANCELED ? "canceled"
                     : result == FLUX_JOB_RESULT_TIMEOUT ? "timeout"
                     : "failed", 1);
}

static json_t *queue_stats (json_t *queues, const char *name)
{
    json_t *o = json_object_get (queues, name);

    if (!o) {
        o = stats_new (name);
        (void)json_object_set_new (queues, name, o);
    }
    return o;
}

static void stats_request (struct list *ctx, const flux_msg_t *msg)
{
    json_t *stats = stats_new (NULL);
    json_t *queues = json_object ();
    json_t *list = json_array ();
    json_t *conf = NULL;
    const char *name;
    json_t *o;
    size_t count;
    struct job **jobs = (struct job **)idmap_values (ctx->jobs, &count);

    (void)flux_conf_unpack (flux_get_conf (ctx->h), NULL, "{s?o}",
                            "queues", &conf);
    json_object_foreach (conf, name, o)
        (void)queue_stats (queues, name);
    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->state == FLUX_JOB_STATE_NEW)
            continue;
        stats_add (stats, jobs[i]);
        if ((name = json_string_value (json_object_get (jobs[i]->attrs,
                                                        "queue"))))
            stats_add (queue_stats (queues, name), jobs[i]);
    }
    free (jobs);
    json_object_foreach (queues, name, o)
        (void)json_array_append (list, o);
    json_decref (queues);
    (void)json_object_set_new (stats, "queues", list);
    respond_pack (ctx->h, msg, "o", stats);
}

static void dispatch (struct list *ctx, const flux_msg_t *msg)
{
    const char *topic;

    if (flux_msg_get_topic (msg, &topic) < 0)
        return;
    if (streq (topic, "job-list.list"))
        list_request (ctx, msg);
    else if (streq (topic, "job-list.list-attrs"))
        list_attrs_request (ctx, msg);
    else if (streq (topic, "job-list.job-stats"))
        stats_request (ctx, msg);
    else if (!list_id_request (ctx, msg)
             && flux_msglist_append (ctx->waiting, msg) < 0)
        respond_error (ctx->h, msg, NULL);
}

static void request_cb (flux_t *h, flux_msg_handler_t *mh,
                        const flux_msg_t *msg, void *arg)
{
    struct list *ctx = arg;

    if (ctx->ready)
        dispatch (ctx, msg);
    else if (flux_msglist_append (ctx->deferred, msg) < 0)
        respond_error (h, msg, NULL);
}

static void journal_cb (flux_future_t *f, void *arg)
{
    struct list *ctx = arg;
    const flux_msg_t *msg;
    flux_jobid_t id;
    json_t *events;
    json_t *jobspec = NULL;
    json_t *R = NULL;
    struct job *job;
    size_t index;
    json_t *entry;

    if (flux_rpc_get_unpack (f, "{s:I s:o s?o s?o}",
                             "id", &id,
                             "events", &events,
                             "jobspec", &jobspec,
                             "R", &R) < 0) {
        if (errno != ENODATA)
            flux_log_error (ctx->h, "job-manager.events-journal");
        flux_reactor_stop (flux_get_reactor (ctx->h));
        return;
    }
    if (id == FLUX_JOBID_ANY) {
        ctx->ready = true;
        while ((msg = flux_msglist_pop (ctx->deferred))) {
            dispatch (ctx, msg);
            flux_msg_decref (msg);
        }
        goto done;
    }
    if (!(job = idmap_get (ctx->jobs, id))) {
        if (!(job = job_create (id))
            || idmap_add (ctx->jobs, id, job) < 0) {
            flux_log_error (ctx->h, "error adding job");
            job_destroy (job);
            goto done;
        }
    }
    // in the backlog these are up to date: the events change nothing more
    job_set_data (job, jobspec, R);
    json_array_foreach (events, index, entry) {
        if (job_event (job, entry) == 1) {
            job_destroy (idmap_take (ctx->jobs, id));
            break;
        }
    }
    if (flux_msglist_count (ctx->waiting) > 0)
        check_waiting (ctx);
done:
    flux_future_reset (f);
}

static void disconnect_cb (flux_t *h, flux_msg_handler_t *mh,
                           const flux_msg_t *msg, void *arg)
{
    struct list *ctx = arg;

    (void)flux_msglist_disconnect (ctx->deferred, msg);
    (void)flux_msglist_disconnect (ctx->waiting, msg);
}

static void reload_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    flux_conf_t *conf;

    if (flux_module_config_request_decode (msg, &conf) < 0
        || flux_set_conf_new (h, conf) < 0)
        respond_error (h, msg, NULL);
    else
        respond_ok (h, msg);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "job-list.list", request_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-list.list-id", request_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-list.list-attrs", request_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-list.job-stats", request_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-list.disconnect", disconnect_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-list.config-reload", reload_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

static void refuse_all (flux_t *h, struct flux_msglist *l)
{
    const flux_msg_t *msg;

    while (l && (msg = flux_msglist_pop (l))) {
        (void)flux_respond_error (h, msg, ENOSYS, "job-list is unloading");
        flux_msg_decref (msg);
    }
    flux_msglist_destroy (l);
}

int mod_main (flux_t *h, int argc, char **argv)
{
    struct list ctx = { .h = h };
    flux_msg_handler_t **handlers = NULL;
    int rc = -1;

    if (!(ctx.jobs = idmap_create ())
        || !(ctx.deferred = flux_msglist_create ())
        || !(ctx.waiting = flux_msglist_create ())
        || flux_msg_handler_addvec (h, htab, &ctx, &handlers) < 0
        || !(ctx.journal = flux_rpc_pack (h, "job-manager.events-journal",
                                          FLUX_NODEID_ANY,
                                          FLUX_RPC_STREAMING,
                                          "{s:b}", "full", 1))
        || flux_future_then (ctx.journal, -1., journal_cb, &ctx) < 0)
        flux_log_error (h, "error initializing job-list");
    else if ((rc = flux_reactor_run (flux_get_reactor (h), 0)) > 0)
        rc = 0;
    flux_msg_handler_delvec (handlers);
    flux_future_destroy (ctx.journal);
    refuse_all (h, ctx.deferred);
    refuse_all (h, ctx.waiting);
    if (ctx.jobs) {
        size_t count;
        void **jobs = idmap_values (ctx.jobs, &count);

        for (size_t i = 0; i < count; i++)
            job_destroy (jobs[i]);
        free (jobs);
        idmap_destroy (ctx.jobs);
    }
    return rc;
}

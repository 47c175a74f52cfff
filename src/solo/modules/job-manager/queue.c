/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Queues (RFC 33): one without name, or those in [queues].  A queue takes
 * jobs (enable) and lets jobs go to the scheduler (start), or not.
 */
#include "jobtap.h"

struct queue {
    struct queue *next;
    char *name;             // NULL: the anonymous one
    json_t *requires;       // properties; may be NULL
    bool enabled;
    bool started;
    bool sticky_started;    // what a checkpoint remembers
    char *disable_reason;
    char *stop_reason;
    bool mark;
};

struct queues {
    struct manager *jm;
    flux_msg_handler_t **handlers;
    struct queue *list;
    bool stop_on_restart;
};

static void queue_free (struct queue *q)
{
    if (q) {
        json_decref (q->requires);
        free (q->name);
        free (q->disable_reason);
        free (q->stop_reason);
        free (q);
    }
}

/* Named queues begin stopped. */
static struct queue *queue_new (const char *name)
{
    struct queue *q;

    if (!(q = calloc (1, sizeof (*q)))
        || (name && !(q->name = strdup (name)))) {
        free (q);
        return NULL;
    }
    q->enabled = true;
    q->started = q->sticky_started = (name == NULL);
    return q;
}

static bool has_named (struct queues *queues)
{
    return queues->list && queues->list->name;
}

static struct queue *find (struct queues *queues, const char *name,
                           flux_error_t *error)
{
    errno = EINVAL;
    if (!name && has_named (queues)) {
        set_error (error, "a named queue is required");
        return NULL;
    }
    for (struct queue *q = queues->list; q; q = q->next) {
        if (name ? q->name && streq (q->name, name) : !q->name)
            return q;
    }
    set_error (error, "'%s' is not a valid queue", name ? name : "default");
    return NULL;
}

/* Keep the state of queues that stay; jobs of one that goes are on hold. */
int queues_configure (struct queues *queues, const flux_conf_t *conf,
                      flux_error_t *error)
{
    json_t *table = NULL;
    int stop_on_restart = 0;
    const char *name;
    json_t *val;
    struct queue **qp;

    if (flux_conf_unpack (conf, error, "{s?{s?b} s?o}",
                          "job-manager",
                            "stop-queues-on-restart", &stop_on_restart,
                          "queues", &table) < 0)
        return -1;
    if (table && !json_is_object (table))
        return set_error (error, "[queues] must be a table");
    queues->stop_on_restart = stop_on_restart;
    for (struct queue *q = queues->list; q; q = q->next)
        q->mark = false;
    json_object_foreach (table, name, val) {
        struct queue *q;
        json_t *requires = json_object_get (val, "requires");

        for (q = queues->list; q; q = q->next) {
            if (q->name && streq (q->name, name))
                break;
        }
        if (!q) {
            if (!(q = queue_new (name)))
                return set_error (error, "out of memory");
            for (qp = &queues->list; *qp; qp = &(*qp)->next)
                ;
            *qp = q;
        }
        q->mark = true;
        json_decref (q->requires);
        q->requires = json_incref (requires);
    }
    if (json_object_size (table) == 0) {
        struct queue *anon = queues->list;

        if (!anon || anon->name) {
            if (!(anon = queue_new (NULL)))
                return set_error (error, "out of memory");
            anon->next = queues->list;
            queues->list = anon;
        }
        anon->mark = true;
    }
    for (qp = &queues->list; *qp;) {
        struct queue *q = *qp;

        if (!q->mark) {
            *qp = q->next;
            queue_free (q);
        }
        else
            qp = &q->next;
    }
    return 0;
}

bool queue_started (struct manager *jm, struct job *job)
{
    struct queue *q = find (jm->queues, job->queue, NULL);

    return q && q->started;
}

int queue_submit_check (struct manager *jm, json_t *jobspec,
                        flux_error_t *error)
{
    json_t *o = jp_get (jobspec, "attributes.system.queue");
    const char *name = json_string_value (o);
    struct queue *q;

    if (!(q = find (jm->queues, name, error)))
        return -1;
    if (!q->enabled) {
        errno = EINVAL;
        return set_error (error, "job submission%s%s is disabled: %s",
                          name ? " to " : "", name ? name : "",
                          q->disable_reason);
    }
    return 0;
}

static void set_string (char **dst, const char *s)
{
    char *copy = s ? strdup (s) : NULL;

    free (*dst);
    *dst = copy;
}

static bool same_queue (struct queue *q, struct job *job)
{
    return !q->name || (job->queue && streq (q->name, job->queue));
}

/* Send jobs of the queue to the scheduler, or call them back. */
static void apply_start (struct manager *jm, struct queue *q)
{
    size_t count;
    void **jobs = idmap_values (jm->active, &count);

    for (size_t i = 0; i < count; i++) {
        struct job *job = jobs[i];

        if (!same_queue (q, job))
            continue;
        if (!q->started) {
            alloc_dequeue (jm, job);
            alloc_cancel (jm, job, false);
        }
        else if (job->state == FLUX_JOB_STATE_SCHED)
            alloc_enqueue (jm, job);
    }
    free (jobs);
    if (q->started)
        alloc_recalc (jm);
}

static void start_queue (struct manager *jm, struct queue *q, bool start,
                         const char *reason, bool nocheckpoint)
{
    q->started = start;
    if (!nocheckpoint)
        q->sticky_started = start;
    set_string (&q->stop_reason, start ? NULL : reason);
    apply_start (jm, q);
}

static void save (struct manager *jm)
{
    if (restart_save (jm) < 0)
        flux_log_error (jm->h, "error saving queue state");
}

static int check_target (struct queues *queues, const char *name, bool all,
                         const char **errstr, flux_error_t *error)
{
    errno = EINVAL;
    if (!name && has_named (queues) && !all) {
        *errstr = "Use --all to apply this command to all queues";
        return -1;
    }
    if (name && !find (queues, name, error)) {
        *errstr = error->text;
        return -1;
    }
    return 0;
}

static void enable_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct queues *queues = jm->queues;
    flux_error_t error;
    const char *errstr = NULL;
    const char *name = NULL;
    const char *reason = NULL;
    int enable;
    int all;

    if (flux_request_unpack (msg, NULL, "{s?s s:b s?s s:b}",
                             "name", &name,
                             "enable", &enable,
                             "reason", &reason,
                             "all", &all) < 0)
        goto error;
    if (!enable && !reason) {
        errstr = "reason is required for disable";
        errno = EINVAL;
        goto error;
    }
    if (check_target (queues, name, all, &errstr, &error) < 0)
        goto error;
    for (struct queue *q = queues->list; q; q = q->next) {
        if (name && !streq (name, q->name))
            continue;
        q->enabled = enable;
        set_string (&q->disable_reason, enable ? NULL : reason);
    }
    save (jm);
    respond_ok (h, msg);
    return;
error:
    respond_error (h, msg, errstr);
}

static void start_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    struct queues *queues = jm->queues;
    flux_error_t error;
    const char *errstr = NULL;
    const char *name = NULL;
    const char *reason = NULL;
    int start;
    int all;
    int nocheckpoint = 0;

    if (flux_request_unpack (msg, NULL, "{s?s s:b s?s s:b s?b}",
                             "name", &name,
                             "start", &start,
                             "reason", &reason,
                             "all", &all,
                             "nocheckpoint", &nocheckpoint) < 0)
        goto error;
    if (check_target (queues, name, all, &errstr, &error) < 0)
        goto error;
    for (struct queue *q = queues->list; q; q = q->next) {
        if (!name || streq (name, q->name))
            start_queue (jm, q, start, reason, nocheckpoint);
    }
    save (jm);
    respond_ok (h, msg);
    return;
error:
    respond_error (h, msg, errstr);
}

/* The configuration as flux-python's queue listing wants it, each queue with
 * the policy that applies to its jobs.
 */
static json_t *encode_conf (flux_t *h)
{
    json_t *queues = NULL;
    json_t *policy = NULL;
    json_t *list = json_array ();
    json_t *conf;
    json_t *entry;
    const char *name;
    json_t *o;

    (void)flux_conf_unpack (flux_get_conf (h),
                            NULL,
                            "{s?o s?o}",
                            "queues", &queues,
                            "policy", &policy);
    json_object_foreach (queues, name, entry) {
        json_t *merged = policy ? json_deep_copy (policy) : json_object ();

        if ((o = json_object_get (entry, "policy")))
            (void)jp_merge (merged, o);
        o = json_pack ("{s:s s:o}", "name", name, "policy", merged);
        json_object_set (o, "requires", json_object_get (entry, "requires"));
        json_array_append_new (list, o);
    }
    conf = json_pack ("{s:o}", "queues", list);
    json_object_set (conf, "policy", policy);
    if ((o = jp_get (policy, "jobspec.defaults.system.queue")))
        json_object_set (conf, "default_queue", o);
    return conf;
}

static void list_cb (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    json_t *a = json_array ();

    for (struct queue *q = jm->queues->list; q; q = q->next) {
        if (q->name)
            json_array_append_new (a, json_string (q->name));
    }
    respond_pack (h,
                  msg,
                  "{s:o s:o}",
                  "queues", a,
                  "conf", encode_conf (h));
}

static void status_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    flux_error_t error;
    const char *name = NULL;
    const char *stop_reason;
    struct queue *q;
    bool online = alloc_online (jm);

    error.text[0] = '\0';
    if (flux_request_unpack (msg, NULL, "{s?s}", "name", &name) < 0
        || !(q = find (jm->queues, name, &error))) {
        respond_error (h, msg, error.text);
        return;
    }
    stop_reason = online ? q->stop_reason : "Scheduler is offline";
    respond_pack (h, msg, "{s:b s:b s:s* s:s* s:s*}",
                  "enable", q->enabled,
                  "start", q->started && online,
                  "blocked",
                    q->started && !online ? "scheduler" : NULL,
                  "disable_reason",
                    q->enabled ? NULL : q->disable_reason,
                  "stop_reason",
                    q->started && online ? NULL : stop_reason);
}

json_t *queues_save (struct queues *queues)
{
    json_t *a = json_array ();

    for (struct queue *q = queues->list; q; q = q->next)
        json_array_append_new (a,
                json_pack ("{s:b s:b s:s* s:s* s:s*}",
                           "enable", q->enabled,
                           "start", q->sticky_started,
                           "name", q->name,
                           "disable_reason",
                             q->enabled ? NULL : q->disable_reason,
                           "stop_reason",
                             q->sticky_started ? NULL : q->stop_reason));
    return a;
}

/* Queues that are not configured any more are passed over. */
void queues_restore (struct queues *queues, json_t *saved)
{
    size_t index;
    json_t *o;

    json_array_foreach (saved, index, o) {
        const char *name = NULL;
        const char *disable_reason = NULL;
        const char *stop_reason = NULL;
        int enable = 1;
        int start = 1;
        struct queue *q;

        if (json_unpack (o, "{s?s s:b s:b s?s s?s}",
                         "name", &name,
                         "enable", &enable,
                         "start", &start,
                         "disable_reason", &disable_reason,
                         "stop_reason", &stop_reason) < 0
            || !(q = find (queues, name, NULL)))
            continue;
        q->enabled = enable;
        set_string (&q->disable_reason, disable_reason);
        if (start && queues->stop_on_restart)
            start_queue (queues->jm, q, false,
                         "Automatically stopped due to restart", false);
        else
            start_queue (queues->jm, q, start, stop_reason, false);
    }
}

/* Moving a job to another queue: its constraints must be those of its
 * present queue, since they are replaced by those of the new one.
 */
static int update_cb (flux_plugin_t *p, const char *topic,
                      flux_plugin_arg_t *args, void *arg)
{
    struct queues *queues = jobtap_manager (p)->queues;
    flux_job_state_t state;
    const char *name;
    const char *current = NULL;
    json_t *constraints = NULL;
    json_t *expected = NULL;
    flux_error_t error;
    struct queue *from;
    struct queue *to;
    bool match;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:s s:i s:{s:{s:{s?s s?o}}}}",
                                "value", &name,
                                "state", &state,
                                "jobspec",
                                  "attributes",
                                    "system",
                                      "queue", &current,
                                      "constraints", &constraints) < 0)
        return flux_jobtap_error (p, args, "plugin args unpack failed");
    if (state & FLUX_JOB_STATE_RUNNING)
        return flux_jobtap_error (p, args, "update of queue for running job "
                                  "not supported");
    if (current && streq (current, name))
        return flux_jobtap_error (p, args, "job queue is already set to %s",
                                  name);
    if (!(to = find (queues, name, &error))
        || !(from = find (queues, current, &error)))
        return flux_jobtap_error (p, args, "%s", error.text);
    if (!to->enabled)
        return flux_jobtap_error (p, args, "queue %s is currently disabled",
                                  name);
    if (from->requires)
        expected = json_pack ("{s:O}", "properties", from->requires);
    match = (json_object_size (constraints) == 0
             && json_object_size (expected) == 0)
        || json_equal (constraints, expected);
    json_decref (expected);
    if (!match)
        return flux_jobtap_error (p, args, "job appears to have non-queue "
                                  "constraints, unable to update queue to %s",
                                  current);
    return flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_OUT,
                                 "{s:i s:{s:{s:O*}}}",
                                 "feasibility", 1,
                                 "updates",
                                   "attributes.system.constraints",
                                     "properties", to->requires);
}

int queue_update_plugin_init (flux_plugin_t *p)
{
    return flux_plugin_add_handler (p, "job.update.attributes.system.queue",
                                    update_cb, NULL);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "job-manager.queue-list", list_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-manager.queue-status", status_cb,
      FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "job-manager.queue-enable", enable_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "job-manager.queue-start", start_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

void queues_destroy (struct queues *queues)
{
    if (queues) {
        int saved_errno = errno;

        flux_msg_handler_delvec (queues->handlers);
        while (queues->list) {
            struct queue *q = queues->list;

            queues->list = q->next;
            queue_free (q);
        }
        free (queues);
        errno = saved_errno;
    }
}

struct queues *queues_create (struct manager *jm)
{
    struct queues *queues;

    if (!(queues = calloc (1, sizeof (*queues))))
        return NULL;
    queues->jm = jm;
    if (flux_msg_handler_addvec (jm->h, htab, jm, &queues->handlers) < 0) {
        free (queues);
        return NULL;
    }
    return queues;
}

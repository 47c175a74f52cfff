/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Queues start and stop, on request and when the instance starts again.
 */
#include "queue.h"

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
    struct job *job;

    each_job (job, jm->active) {
        if (!same_queue (q, job))
            continue;
        if (!q->started) {
            alloc_dequeue (jm, job);
            alloc_cancel (jm, job, false);
        }
        else if (job->state == FLUX_JOB_STATE_SCHED)
            alloc_enqueue (jm, job);
    }
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
    if (checkpoint_save (jm) < 0)
        flux_log_error (jm->h, "error saving queue state");
}

static int check_target (struct queues *queues, const char *name, bool all,
                         const char **errstr, flux_error_t *error)
{
    errno = EINVAL;
    if (!name && queues_have_names (queues) && !all) {
        *errstr = "there are named queues: name one, or say all";
        return -1;
    }
    if (name && !queue_find (queues, name, error)) {
        *errstr = error->text;
        return -1;
    }
    return 0;
}

void queue_start_request (flux_t *h, flux_msg_handler_t *mh,
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

/* The configuration as flux-python wants it, each queue with the policy that
 * applies to its jobs.
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

void queue_list_request (flux_t *h, flux_msg_handler_t *mh,
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

void queue_status_request (flux_t *h, flux_msg_handler_t *mh,
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
        || !(q = queue_find (jm->queues, name, &error))) {
        respond_error (h, msg, error.text);
        return;
    }
    stop_reason = online ? q->stop_reason : "Scheduler is offline";
    respond_pack (h, msg, "{s:b s:b s:s* s:s*}",
                  "enable", true,
                  "start", q->started && online,
                  "blocked",
                    q->started && !online ? "scheduler" : NULL,
                  "stop_reason",
                    q->started && online ? NULL : stop_reason);
}

/* Queues that are not configured any more are passed over. */
void queues_restore (struct queues *queues, json_t *saved)
{
    size_t index;
    json_t *o;

    json_array_foreach (saved, index, o) {
        const char *name = NULL;
        const char *stop_reason = NULL;
        int start = 1;
        struct queue *q;

        if (json_unpack (o, "{s?s s:b s?s}",
                         "name", &name,
                         "start", &start,
                         "stop_reason", &stop_reason) < 0
            || !(q = queue_find (queues, name, NULL)))
            continue;
        if (start && queues->stop_on_restart)
            start_queue (queues->jm, q, false,
                         "stopped, as it was before the restart", false);
        else
            start_queue (queues->jm, q, start, stop_reason, false);
    }
}

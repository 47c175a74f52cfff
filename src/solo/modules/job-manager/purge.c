/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Forgetting inactive jobs, by age or number: on request and as configured
 * by [job-manager] inactive-age-limit and inactive-num-limit.
 */
#include "manager.h"

enum {
    NUM_UNLIMITED = -1,
    BATCH_MAX = 100,
};
static const double age_unlimited = -1.;
static const double interval = 1.; // of looking for old jobs, s

struct purge {
    struct manager *jm;
    flux_msg_handler_t **handlers;
    flux_watcher_t *timer;
    double age_limit;
    int num_limit;
};

/* The map of inactive jobs has them in the order they ended. */
static size_t eligible (struct manager *jm, double age_limit, int num_limit)
{
    size_t count;
    struct job **jobs = (struct job **)idmap_values (jm->inactive, &count);
    double now = now_realtime ();
    size_t n = 0;

    if (num_limit != NUM_UNLIMITED && count > (size_t)num_limit)
        n = count - num_limit;
    while (age_limit >= 0. && n < count && now - jobs[n]->t_clean >= age_limit)
        n++;
    free (jobs);
    return n;
}

static void commit_cb (flux_future_t *f, void *arg)
{
    flux_t *h = arg;
    const flux_msg_t *msg = flux_future_aux_get (f, "request");
    json_t *ids = flux_future_aux_get (f, "ids");

    if (flux_future_get (f, NULL) < 0) {
        flux_log_error (h, "purge: error committing to the KVS");
        if (msg)
            respond_error (h, msg, NULL);
    }
    else if (msg)
        respond_pack (h, msg, "{s:i}", "count", (int)json_array_size (ids));
    flux_future_destroy (f);
}

/* Remove jobs[0..n-1]; 'msg' (may be NULL) is answered when it is done. */
static int purge_jobs (struct manager *jm, struct job **jobs, size_t n,
                       const flux_msg_t *msg)
{
    flux_kvs_txn_t *txn = flux_kvs_txn_create ();
    json_t *ids = json_array ();
    flux_future_t *f = NULL;
    flux_future_t *pub = NULL;
    int rc = -1;

    for (size_t i = 0; i < n; i++) {
        char key[64];

        if (flux_job_kvs_key (key, sizeof (key), jobs[i]->id, NULL) < 0
            || flux_kvs_txn_unlink (txn, 0, key) < 0)
            goto done;
        json_array_append_new (ids, json_integer (jobs[i]->id));
    }
    if (!(f = flux_kvs_commit (jm->h, NULL, 0, txn))
        || flux_future_aux_set (f, "ids", json_incref (ids),
                                (flux_free_f)json_decref) < 0
        || (msg && flux_future_aux_set (f, "request",
                                        (void *)flux_msg_incref (msg),
                                        (flux_free_f)flux_msg_decref) < 0)
        || flux_future_then (f, -1., commit_cb, jm->h) < 0
        || !(pub = flux_event_publish_pack (jm->h, "job-purge-inactive", 0,
                                            "{s:O}", "jobs", ids)))
        goto done;
    f = NULL; // commit_cb has it
    for (size_t i = 0; i < n; i++) {
        (void)jobtap_call (jm, jobs[i], "job.inactive-remove", NULL);
        (void)idmap_take (jm->inactive, jobs[i]->id);
        job_aux_clear (jobs[i], NULL);
        job_decref (jobs[i]);
    }
    rc = 0;
done:
    flux_future_destroy (f);
    flux_future_destroy (pub);
    flux_kvs_txn_destroy (txn);
    json_decref (ids);
    return rc;
}

static int purge_oldest (struct manager *jm, size_t n, const flux_msg_t *msg)
{
    size_t count;
    struct job **jobs = (struct job **)idmap_values (jm->inactive, &count);
    int rc = purge_jobs (jm, jobs, n < count ? n : count, msg);

    free (jobs);
    return rc;
}

static void purge_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    const char *errstr = NULL;
    double age_limit;
    int num_limit;
    int batch;
    int force;
    size_t n;

    if (flux_request_unpack (msg, NULL, "{s:F s:i s:i s:b}",
                             "age_limit", &age_limit,
                             "num_limit", &num_limit,
                             "batch", &batch,
                             "force", &force) < 0)
        goto error;
    errno = EINVAL;
    if (age_limit != age_unlimited && age_limit < 0.)
        errstr = "if set, age limit must be >= 0";
    else if (num_limit != NUM_UNLIMITED && num_limit < 0)
        errstr = "if set, num limit must be >= 0";
    else if (batch < 1 || batch > BATCH_MAX)
        errstr = "batch must be >= 1 and <= 100";
    if (errstr)
        goto error;
    n = eligible (jm, age_limit, num_limit);
    if (!force || n == 0) {
        respond_pack (h, msg, "{s:i}", "count", (int)n);
        return;
    }
    if (purge_oldest (jm, n < (size_t)batch ? n : (size_t)batch, msg) < 0)
        goto error;
    return;
error:
    respond_error (h, msg, errstr);
}

static void purge_id_cb (flux_t *h, flux_msg_handler_t *mh,
                         const flux_msg_t *msg, void *arg)
{
    struct manager *jm = arg;
    const char *errstr = NULL;
    flux_jobid_t id;
    struct job *job;
    int force;

    if (flux_request_unpack (msg, NULL, "{s:I s:i}",
                             "id", &id,
                             "force", &force) < 0)
        goto error;
    if (!(job = idmap_get (jm->inactive, id))) {
        errstr = idmap_get (jm->active, id) ? "cannot purge active job"
                                            : "unknown job id";
        errno = ENOENT;
        goto error;
    }
    if (!force) {
        respond_pack (h, msg, "{s:i}", "count", 1);
    }
    else if (purge_jobs (jm, &job, 1, msg) < 0)
        goto error;
    return;
error:
    respond_error (h, msg, errstr);
}

static void timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    struct purge *purge = arg;
    size_t n = eligible (purge->jm, purge->age_limit, purge->num_limit);

    if (n > 0
        && purge_oldest (purge->jm, n < BATCH_MAX ? n : BATCH_MAX, NULL) < 0)
        flux_log_error (purge->jm->h, "error purging jobs");
}

/* Look soon, if there is something to look for. */
void purge_job_inactive (struct manager *jm, struct job *job)
{
    struct purge *purge = jm->purge;

    if (purge->age_limit >= 0. || purge->num_limit >= 0)
        flux_watcher_start (purge->timer);
}

int purge_configure (struct purge *purge, const flux_conf_t *conf,
                     flux_error_t *error)
{
    json_t *age = NULL;

    purge->age_limit = age_unlimited;
    purge->num_limit = NUM_UNLIMITED;
    if (flux_conf_unpack (conf, error, "{s?{s?o s?i}}",
                          "job-manager",
                            "inactive-age-limit", &age,
                            "inactive-num-limit", &purge->num_limit) < 0)
        return -1;
    errno = EINVAL;
    if (age && json_duration (age, &purge->age_limit) < 0)
        return set_error (error, "job-manager.inactive-age-limit: "
                          "invalid duration");
    if (purge->num_limit < NUM_UNLIMITED)
        return set_error (error, "job-manager.inactive-num-limit: "
                          "must be >= 0");
    flux_watcher_stop (purge->timer);
    if (purge->age_limit >= 0. || purge->num_limit >= 0)
        flux_watcher_start (purge->timer);
    return 0;
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "job-manager.purge", purge_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "job-manager.purge-id", purge_id_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

void purge_destroy (struct purge *purge)
{
    if (purge) {
        int saved_errno = errno;

        flux_msg_handler_delvec (purge->handlers);
        flux_watcher_destroy (purge->timer);
        free (purge);
        errno = saved_errno;
    }
}

struct purge *purge_create (struct manager *jm)
{
    struct purge *purge;

    if (!(purge = calloc (1, sizeof (*purge))))
        return NULL;
    purge->jm = jm;
    purge->age_limit = age_unlimited;
    purge->num_limit = NUM_UNLIMITED;
    if (!(purge->timer = flux_timer_watcher_create (flux_get_reactor (jm->h),
                                                    interval, interval,
                                                    timer_cb, purge))
        || flux_msg_handler_addvec (jm->h, htab, jm, &purge->handlers) < 0) {
        purge_destroy (purge);
        return NULL;
    }
    return purge;
}

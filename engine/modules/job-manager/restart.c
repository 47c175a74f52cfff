/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Start from the KVS: replay the eventlog of every job, then let each go on
 * from the state it was in.
 */
#include "manager.h"

static int lookup (struct manager *jm, flux_jobid_t id, const char *name,
                   flux_future_t **fp, const char **val)
{
    char key[64];

    if (flux_job_kvs_key (key, sizeof (key), id, name) < 0
        || !(*fp = flux_kvs_lookup (jm->h, NULL, 0, key)))
        return -1;
    return flux_kvs_lookup_get (*fp, val);
}

/* Written, but never accepted: the user has not heard its ID. */
static void forget (struct manager *jm, const char *key)
{
    flux_kvs_txn_t *txn = flux_kvs_txn_create ();
    flux_future_t *f = NULL;

    if (!txn
        || flux_kvs_txn_unlink (txn, 0, key) < 0
        || !(f = flux_kvs_commit (jm->h, NULL, 0, txn))
        || flux_future_get (f, NULL) < 0)
        flux_log_error (jm->h, "error removing %s", key);
    flux_future_destroy (f);
    flux_kvs_txn_destroy (txn);
}

/* Move a job that cannot be read out of the way, rather than lose the job. */
static void set_aside (struct manager *jm, const char *key, flux_jobid_t id)
{
    flux_kvs_txn_t *txn = flux_kvs_txn_create ();
    flux_future_t *f = flux_kvs_lookup (jm->h, NULL, FLUX_KVS_TREEOBJ, key);
    flux_future_t *done = NULL;
    const char *treeobj;
    char dst[128];

    snprintf (dst, sizeof (dst), "job-lost+found.job.%s", idf58 (id));
    if (!txn
        || flux_kvs_lookup_get_treeobj (f, &treeobj) < 0
        || flux_kvs_txn_put_treeobj (txn, 0, dst, treeobj) < 0
        || !(done = flux_kvs_commit (jm->h, NULL, 0, txn))
        || flux_future_get (done, NULL) < 0)
        flux_log_error (jm->h, "cp %s %s", key, dst);
    else
        forget (jm, key);
    flux_future_destroy (done);
    flux_future_destroy (f);
    flux_kvs_txn_destroy (txn);
}

/* ENODATA: the job was never accepted. */
static struct job *replay (flux_jobid_t id, const char *eventlog,
                           const char *jobspec, const char *R,
                           flux_error_t *error)
{
    struct job *job;
    size_t index;
    json_t *entry;

    if (!(job = job_create (id))) {
        set_error (error, "out of memory");
        return NULL;
    }
    json_decref (job->eventlog);
    if (!(job->jobspec = json_loads (jobspec, 0, NULL))
        || job_parse_queue (job->jobspec, &job->queue) < 0) {
        set_error (error, "its jobspec is not valid");
        goto inval;
    }
    jp_del (job->jobspec, "attributes.system.environment");
    if (R) {
        if (!(job->R = json_loads (R, 0, NULL))) {
            set_error (error, "its R is not JSON");
            goto inval;
        }
        (void)json_object_del (job->R, "scheduling");
    }
    if (!(job->eventlog = eventlog_parse (eventlog))) {
        set_error (error, "its eventlog is not valid");
        goto inval;
    }
    json_array_foreach (job->eventlog, index, entry) {
        const char *name;

        (void)entry_parse (entry, NULL, &name, NULL);
        if (index == 0 && !streq (name, "submit")) {
            set_error (error, "the eventlog begins with %s", name);
            goto inval;
        }
        if (job_apply_event (job, entry) < 0) {
            set_error (error, "its event %s does not fit", name);
            goto inval;
        }
    }
    // the scheduler writes R before it says so: that may not have come about
    if (!json_object_get (job->posted, "alloc")) {
        json_decref (job->R);
        job->R = NULL;
    }
    if (job->state == FLUX_JOB_STATE_NEW) {
        job_decref (job);
        errno = ENODATA;
        return NULL;
    }
    return job;
inval:
    job_decref (job);
    errno = EINVAL;
    return NULL;
}

static void load_job (struct manager *jm, flux_jobid_t id, const char *key)
{
    flux_future_t *f[3] = { NULL, NULL, NULL };
    const char *eventlog;
    const char *jobspec;
    const char *R;
    struct job *job = NULL;
    bool never_accepted;
    flux_error_t error;

    if (lookup (jm, id, "eventlog", &f[0], &eventlog) < 0
        && errno == ENOENT) {
        flux_future_destroy (f[0]);
        forget (jm, key);
        return;
    }
    if (flux_kvs_lookup_get (f[0], &eventlog) < 0
        || lookup (jm, id, "jobspec", &f[1], &jobspec) < 0)
        set_error (&error, "incomplete: %s", strerror (errno));
    else {
        if (lookup (jm, id, "R", &f[2], &R) < 0)
            R = NULL;
        job = replay (id, eventlog, jobspec, R, &error);
    }
    never_accepted = !job && errno == ENODATA;
    for (int i = 0; i < 3; i++)
        flux_future_destroy (f[i]);
    if (never_accepted) {
        forget (jm, key);
        return;
    }
    if (!job || idmap_insert (jm->active, id, job) < 0) {
        flux_log (jm->h, LOG_ERR, "job %s not replayed: %s", idf58 (id),
                  job ? strerror (errno) : error.text);
        set_aside (jm, key, id);
        job_decref (job);
        return;
    }
    if (jm->max_jobid < id)
        jm->max_jobid = id;
    if (job->flags & FLUX_JOB_WAITABLE)
        wait_job_active (jm, job);
}

/* Jobs lie four levels below "job", in order of their IDs. */
static int walk (struct manager *jm, const char *key, int level)
{
    flux_future_t *f;
    const flux_kvsdir_t *dir;
    flux_kvsitr_t *itr;
    const char *name;
    int rc = -1;

    if (!(f = flux_kvs_lookup (jm->h, NULL, FLUX_KVS_READDIR, key)))
        return -1;
    if (flux_kvs_lookup_get_dir (f, &dir) < 0) {
        if (errno == ENOENT && level == 0)
            rc = 0;
        goto done;
    }
    if (!(itr = flux_kvsitr_create (dir)))
        goto done;
    rc = 0;
    while (rc == 0 && (name = flux_kvsitr_next (itr))) {
        char *sub;

        if (!flux_kvsdir_isdir (dir, name))
            continue;
        if (!(sub = flux_kvsdir_key_at (dir, name)))
            rc = -1;
        else if (level < 3)
            rc = walk (jm, sub, level + 1);
        else {
            flux_jobid_t id;

            if (flux_job_id_parse (sub, &id) < 0)
                flux_log (jm->h, LOG_ERR, "%s is not a job", sub);
            else
                load_job (jm, id, sub);
        }
        free (sub);
    }
    flux_kvsitr_destroy (itr);
done:
    flux_future_destroy (f);
    return rc;
}

static void resume_job (struct manager *jm, struct job *job)
{
    flux_error_t error;

    if (job->state == FLUX_JOB_STATE_DEPEND
        && jobtap_check_dependencies (jm, job, true, &error) < 0)
        flux_log (jm->h, LOG_ERR, "%s: %s", idf58 (job->id), error.text);
    (void)jobtap_call (jm, job, "job.create", NULL);
    (void)jobtap_call (jm, job, "job.new", NULL);
    if (job->state == FLUX_JOB_STATE_SCHED) {
        job->priority = -1; // so that a new one is a change
        if (event_post (jm, job, 0, "flux-restart", NULL) < 0)
            flux_log_error (jm->h, "%s: flux-restart", idf58 (job->id));
        return;
    }
    if (job->state & FLUX_JOB_STATE_RUNNING)
        jm->running_jobs++;
    if (event_action (jm, job) < 0)
        flux_log_error (jm->h, "%s: error resuming", idf58 (job->id));
}

static int by_end (const void *a, const void *b)
{
    const struct job *j1 = *(struct job *const *)a;
    const struct job *j2 = *(struct job *const *)b;

    if (j1->t_clean != j2->t_clean)
        return j1->t_clean < j2->t_clean ? -1 : 1;
    return j1->id < j2->id ? -1 : j1->id > j2->id;
}

/* Inactive jobs first, so that plugins never see them as active, in the order
 * they ended; then each active job, oldest first.
 */
int restart_from_kvs (struct manager *jm)
{
    struct job **over;
    struct job *job;
    size_t count = 0;
    json_t *queues;

    if (walk (jm, "job", 0) < 0) {
        flux_log_error (jm->h, "restart: error reading jobs");
        return -1;
    }
    if (checkpoint_load (jm, &queues) < 0)
        return -1;
    queues_restore (jm->queues, queues);
    json_decref (queues);
    if (!(over = calloc (idmap_count (jm->active) + 1, sizeof (*over))))
        return -1;
    each_job (job, jm->active) {
        if (job->state == FLUX_JOB_STATE_INACTIVE)
            over[count++] = job;
    }
    qsort (over, count, sizeof (*over), by_end);
    for (size_t i = 0; i < count; i++)
        event_action (jm, over[i]);
    free (over);
    each_job (job, jm->active)
        resume_job (jm, job);
    flux_log (jm->h, LOG_DEBUG, "restart: %zu jobs, %d running",
              idmap_count (jm->active) + idmap_count (jm->inactive),
              jm->running_jobs);
    return 0;
}

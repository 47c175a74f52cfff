/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Start from the KVS: replay the eventlog of every job, then let each go on
 * from the state it was in.  Queue state and the highest job ID lie in a
 * checkpoint.
 */
#include "manager.h"

#define CHECKPOINT "checkpoint.job-manager"

static int lookup (struct manager *jm, flux_jobid_t id, const char *name,
                   flux_future_t **fp, const char **val)
{
    char key[64];

    if (flux_job_kvs_key (key, sizeof (key), id, name) < 0
        || !(*fp = flux_kvs_lookup (jm->h, NULL, 0, key)))
        return -1;
    return flux_kvs_lookup_get (*fp, val);
}

/* What cannot be read is moved out of the way, not lost. */
static void set_aside (struct manager *jm, const char *key, flux_jobid_t id)
{
    flux_future_t *f;
    char dst[128];

    snprintf (dst, sizeof (dst), "job-lost+found.job.%s", idf58 (id));
    if (!(f = flux_kvs_move (jm->h, NULL, key, NULL, dst, 0))
        || flux_future_get (f, NULL) < 0)
        flux_log_error (jm->h, "mv %s %s", key, dst);
    flux_future_destroy (f);
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
        job = job_replay (id, eventlog, jobspec, R, &error);
    }
    never_accepted = !job && errno == ENODATA;
    for (int i = 0; i < 3; i++)
        flux_future_destroy (f[i]);
    if (never_accepted) {
        forget (jm, key);
        return;
    }
    if (!job || idmap_add (jm->active, id, job) < 0) {
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

static int restore_checkpoint (struct manager *jm)
{
    flux_future_t *f;
    flux_jobid_t id;
    json_t *queue = NULL;
    int rc = -1;

    if (!(f = flux_kvs_lookup (jm->h, NULL, 0, CHECKPOINT)))
        return -1;
    if (flux_kvs_lookup_get_unpack (f, "{s:I s?o}",
                                    "max_jobid", &id,
                                    "queue", &queue) == 0) {
        if (jm->max_jobid < id)
            jm->max_jobid = id;
        queues_restore (jm->queues, queue);
        rc = 0;
    }
    else if (errno == ENOENT)
        rc = 0;
    flux_future_destroy (f);
    return rc;
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
    size_t count;
    struct job **jobs;

    if (walk (jm, "job", 0) < 0) {
        flux_log_error (jm->h, "restart: error reading jobs");
        return -1;
    }
    if (restore_checkpoint (jm) < 0) {
        flux_log_error (jm->h, "restart: error reading %s", CHECKPOINT);
        return -1;
    }
    jobs = (struct job **)idmap_values (jm->active, &count);
    if (count > 0)
        qsort (jobs, count, sizeof (*jobs), by_end);
    for (size_t i = 0; i < count; i++) {
        job_incref (jobs[i]);
        if (jobs[i]->state == FLUX_JOB_STATE_INACTIVE)
            event_action (jm, jobs[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (jobs[i]->state != FLUX_JOB_STATE_INACTIVE)
            resume_job (jm, jobs[i]);
        job_decref (jobs[i]);
    }
    free (jobs);
    flux_log (jm->h, LOG_DEBUG, "restart: %zu jobs, %d running", count,
              jm->running_jobs);
    return 0;
}

int restart_save (struct manager *jm)
{
    flux_kvs_txn_t *txn;
    flux_future_t *f = NULL;
    int rc = -1;

    if ((txn = flux_kvs_txn_create ())
        && flux_kvs_txn_pack (txn, 0, CHECKPOINT, "{s:i s:I s:o}",
                              "version", 1,
                              "max_jobid", jm->max_jobid,
                              "queue", queues_save (jm->queues)) == 0
        && (f = flux_kvs_commit (jm->h, NULL, 0, txn)))
        rc = flux_future_get (f, NULL);
    flux_future_destroy (f);
    flux_kvs_txn_destroy (txn);
    return rc;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The job manager module: puts its parts together in the order in which
 * they need each other, restores the jobs, runs.
 */
#include "manager.h"

static int configure (struct manager *jm, const flux_conf_t *conf,
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
    if (configure (jm, conf, &error) < 0
        || flux_set_conf_new (h, conf) < 0) {
        flux_conf_decref (conf);
        goto error;
    }
    respond_ok (h, msg);
    return;
error:
    respond_error (h, msg, error.text);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "job-manager.config-reload", reload_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

/* Destructors of plugin data run now, and find jobs that take no events. */
static void drop_jobs (struct idmap *map)
{
    size_t count;
    void **jobs;

    if (!map)
        return;
    jobs = idmap_values (map, &count);
    for (size_t i = 0; i < count; i++) {
        struct job *job = jobs[i];

        job->readonly = true;
        job_aux_clear (job, NULL);
        (void)idmap_take (map, job->id);
        job_decref (job);
    }
    free (jobs);
}

/* The event batch goes early since it commits what is left; plugins go last
 * since their data hangs on jobs.
 */
static void manager_finalize (struct manager *jm)
{
    event_destroy (jm->event);
    jm->event = NULL;
    update_destroy (jm->update);
    waiters_destroy (jm->waiters);
    start_destroy (jm->start);
    journal_destroy (jm->journal);
    if (jm->active)
        drop_jobs (jm->active);
    if (jm->inactive)
        drop_jobs (jm->inactive);
    jobtap_destroy (jm->jobtap);
    alloc_destroy (jm->alloc);
    queues_destroy (jm->queues);
    idmap_destroy (jm->active);
    idmap_destroy (jm->inactive);
}

static int manager_init (struct manager *jm, flux_t *h)
{
    memset (jm, 0, sizeof (*jm));
    jm->h = h;
    jm->owner = getuid ();
    if (!(jm->active = idmap_create ())
        || !(jm->inactive = idmap_create ())
        || !(jm->event = event_create (jm, &act_ops))
        || !(jm->journal = journal_create (jm))
        || !(jm->queues = queues_create (jm))
        || queues_serve (jm) < 0
        || !(jm->alloc = alloc_create (jm))
        || !(jm->start = start_create (jm))
        || !(jm->waiters = waiters_create (jm))
        || !(jm->update = update_create (jm))
        || !(jm->jobtap = jobtap_create (jm)))
        return -1;
    return 0;
}

int mod_main (flux_t *h, int argc, char **argv)
{
    struct manager jm;
    flux_msg_handler_t **handlers = NULL;
    flux_error_t error;
    int rc = -1;

    if (manager_init (&jm, h) < 0) {
        flux_log_error (h, "error initializing job manager");
        goto done;
    }
    if (configure (&jm, flux_get_conf (h), &error) < 0) {
        flux_log (h, LOG_ERR, "%s", error.text);
        goto done;
    }
    if (restart_from_kvs (&jm) < 0)
        goto done;
    if (request_handlers_add (&jm) < 0
        || flux_msg_handler_addvec (h, htab, &jm, &handlers) < 0) {
        flux_log_error (h, "error adding message handlers");
        goto done;
    }
    if (flux_reactor_run (flux_get_reactor (h), 0) < 0) {
        flux_log_error (h, "flux_reactor_run");
        goto done;
    }
    if (checkpoint_save (&jm) < 0)
        flux_log_error (h, "error saving state to the KVS");
    rc = 0;
done:
    flux_msg_handler_delvec (handlers);
    flux_msg_handler_delvec (jm.handlers);
    manager_finalize (&jm);
    return rc;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The job manager module: puts its parts together in the order in which
 * they need each other, restores the jobs, runs.
 */
#include "manager.h"

/* Destructors of plugin data run now, and find jobs that take no events. */
static void drop_jobs (struct idmap *map)
{
    struct job *job;

    each_job (job, map) {
        job->readonly = true;
        job_aux_clear (job, NULL);
        idmap_delete (map, job->id);
    }
}

/* The event batch goes early since it commits what is left; plugins go last
 * since their data hangs on jobs.
 */
static void manager_finalize (struct manager *jm)
{
    event_destroy (jm->event);
    jm->event = NULL;
    waiters_destroy (jm->waiters);
    start_forget (jm);
    journal_end (jm);
    flux_msglist_destroy (jm->journal);
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
    if (!(jm->active = idmap_create (job_decref))
        || !(jm->inactive = idmap_create (job_decref))
        || !(jm->event = event_create (jm, &act_ops))
        || !(jm->journal = flux_msglist_create ())
        || !(jm->queues = queues_create (jm))
        || !(jm->alloc = alloc_create (jm))
        || !(jm->waiters = waiters_create (jm))
        || !(jm->jobtap = jobtap_create (jm)))
        return -1;
    return 0;
}

int mod_main (flux_t *h, int argc, char **argv)
{
    struct manager jm;
    flux_error_t error;
    int rc = -1;

    if (manager_init (&jm, h) < 0) {
        flux_log_error (h, "error initializing job manager");
        goto done;
    }
    if (manager_configure (&jm, flux_get_conf (h), &error) < 0) {
        flux_log (h, LOG_ERR, "%s", error.text);
        goto done;
    }
    if (restart_from_kvs (&jm) < 0)
        goto done;
    if (request_handlers_add (&jm) < 0) {
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
    flux_msg_handler_delvec (jm.requests);
    flux_msg_handler_delvec (jm.responses);
    manager_finalize (&jm);
    return rc;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Facts from the eventlog of a job that the plugin did not see from its
 * beginning; see rebuild.h. The job manager is asked first: what it has in
 * memory can be a few milliseconds ahead of the KVS.
 */

#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "rebuild.h"
#include "request.h"
#include "service.h"

static int watch (struct dws_job *job, flux_future_t *f, flux_continuation_f cb)
{
    if (!f)
        return -1;
    if (flux_future_then (f, -1., cb, job) < 0) {
        int saved_errno = errno;
        flux_future_destroy (f);
        errno = saved_errno;
        return -1;
    }
    flux_future_destroy (job->f_rebuild);
    job->f_rebuild = f;
    return 0;
}

static int watch_kvs (struct dws_job *job,
                      const char *name,
                      flux_continuation_f cb)
{
    char key[64];

    if (flux_job_kvs_key (key, sizeof (key), job->id, name) < 0)
        return -1;
    return watch (job, flux_kvs_lookup (job->ctx->h, NULL, 0, key), cb);
}

/* The plugin was not there when the job's dependencies were collected. */
static int resume_depend (struct dws_job *job)
{
    if (job->dw_error) {
        dws_job_raise (job, DWS_DEPENDENCY, job->dw_error);
        return 0;
    }
    if (!job->facts.depend_added) {
        if (flux_jobtap_dependency_add (job->ctx->p,
                                        job->id,
                                        DWS_DEPENDENCY) < 0)
            return -1;
        job->facts.depend_added = true;
    }
    if (!dws_facts_depend_held (&job->facts))
        return 0;
    return dws_request_create (job);
}

static int resume_run (struct dws_job *job)
{
    if (!dws_facts_prolog_held (&job->facts))
        return 0;
    if (job->facts.environment_posted)
        return dws_job_release_prolog (job, 0);
    return dws_request_setup (job);
}

static int resume_cleanup (struct dws_job *job)
{
    struct dws_facts *facts = &job->facts;

    if (dws_job_release_prolog (job, 1) < 0)
        return -1;
    if (facts->epilog_finished
        || (facts->run_started && !facts->run_finished))
        return 0;
    if (dws_facts_abandoned (facts)) {
        dws_job_abandon (job);
        return 0;
    }
    if (facts->epilog_started && dws_job_start_timer (job) < 0)
        return -1;
    return dws_request_post_run (job);
}

/* Say again what was last said about the job. The service takes repetitions
 * as successes; if it is not there, it will ask.
 */
static void resume (struct dws_job *job)
{
    struct dws_ctx *ctx = job->ctx;
    flux_jobid_t id = job->id;
    int rc = 0;

    switch (dws_job_state (job)) {
        case FLUX_JOB_STATE_DEPEND:
            rc = resume_depend (job);
            break;
        case FLUX_JOB_STATE_RUN:
            rc = resume_run (job);
            break;
        case FLUX_JOB_STATE_CLEANUP:
            rc = resume_cleanup (job);
            break;
    }
    if (rc < 0)
        flux_log_error (ctx->h, "dws: job %ju: resume", (uintmax_t)id);
}

static void finish (struct dws_job *job)
{
    struct dws_ctx *ctx = job->ctx;

    job->known = true;
    resume (job);
    dws_service_retry (ctx);
}

static void fail (struct dws_job *job, const char *what)
{
    flux_log_error (job->ctx->h, "dws: %s: reading %s", job->idf58, what);
    finish (job);
}

/* The job manager has the jobspec as it was updated, the KVS as it was
 * submitted.
 */
static void jobspec_cb (flux_future_t *f, void *arg)
{
    struct dws_job *job = arg;
    json_t *resources;

    if (flux_kvs_lookup_get_unpack (f, "{s:o}", "resources", &resources) < 0) {
        fail (job, "jobspec");
        return;
    }
    json_decref (job->resources);
    job->resources = json_incref (resources);
    finish (job);
}

static void use_eventlog (struct dws_job *job, json_t *entries)
{
    if (dws_facts_apply_all (&job->facts, entries) < 0)
        fail (job, "eventlog");
    else if (!job->facts.resources_updated)
        finish (job);
    else if (watch_kvs (job, "jobspec", jobspec_cb) < 0)
        fail (job, "jobspec");
}

/* One JSON object to a line */
static json_t *decode_eventlog (const char *s)
{
    json_t *entries;
    size_t len;

    if (!(entries = json_array ()))
        goto nomem;
    while ((len = strcspn (s, "\n")) > 0) {
        json_t *entry;

        if (!(entry = json_loadb (s, len, 0, NULL))) {
            json_decref (entries);
            errno = EPROTO;
            return NULL;
        }
        if (json_array_append_new (entries, entry) < 0)
            goto nomem;
        s += len;
        s += strspn (s, "\n");
    }
    return entries;
nomem:
    json_decref (entries);
    errno = ENOMEM;
    return NULL;
}

static void eventlog_cb (flux_future_t *f, void *arg)
{
    struct dws_job *job = arg;
    const char *s;
    json_t *entries;

    if (flux_kvs_lookup_get (f, &s) < 0
        || !(entries = decode_eventlog (s ? s : ""))) {
        fail (job, "eventlog");
        return;
    }
    use_eventlog (job, entries);
    json_decref (entries);
}

static void getattr_cb (flux_future_t *f, void *arg)
{
    struct dws_job *job = arg;
    json_t *entries;

    if (flux_rpc_get_unpack (f, "{s:o}", "eventlog", &entries) == 0) {
        /* Outlive the future, which the next request destroys. */
        json_incref (entries);
        use_eventlog (job, entries);
        json_decref (entries);
    }
    else if (watch_kvs (job, "eventlog", eventlog_cb) < 0)
        fail (job, "eventlog");
}

int dws_rebuild (struct dws_job *job)
{
    return watch (job,
                  flux_rpc_pack (job->ctx->h,
                                 "job-manager.getattr",
                                 FLUX_NODEID_ANY,
                                 0,
                                 "{s:I s:[s]}",
                                 "id", (json_int_t)job->id,
                                 "attrs", "eventlog"),
                  getattr_cb);
}

// vi: ts=4 sw=4 expandtab

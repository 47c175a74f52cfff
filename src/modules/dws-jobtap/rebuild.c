/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Facts from the eventlog of a job that the plugin did not see from its
 * beginning; see rebuild.h. The job manager is asked first: what it has in
 * memory can be a few milliseconds ahead of the KVS.
 */

#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "libutil/safelog.h"
#include "abandon.h"
#include "rebuild.h"
#include "request.h"
#include "service.h"
#include "timelimit.h"
#include "user.h"

static int await_kvs (struct jobtap_job *job,
                      const char *name,
                      flux_continuation_f cb)
{
    char key[64];

    if (flux_job_kvs_key (key, sizeof (key), job->id, name) < 0)
        return -1;
    return jobtap_job_await (job, &job->f_rebuild,
                             flux_kvs_lookup (job->ctx->h, NULL, 0, key), -1.,
                             cb);
}

/* The plugin was not there when the job's dependencies were collected. */
static int resume_depend (struct jobtap_job *job)
{
    if (job->dw_error) {
        jobtap_job_raise (job, DWS_DEPENDENCY, job->dw_error);
        return 0;
    }
    if (!job->facts.depend_added) {
        if (flux_jobtap_dependency_add (job->ctx->p,
                                        job->id,
                                        DWS_DEPENDENCY) < 0)
            return -1;
        job->facts.posted.depend = true;
    }
    if (!jobtap_facts_depend_held (&job->facts))
        return 0;
    if (job->nameless)
        return jobtap_user_request (job);
    return jobtap_request_create (job);
}

static int resume_run (struct jobtap_job *job)
{
    jobtap_timelimit_prolong (job);
    if (!jobtap_facts_prolog_held (&job->facts))
        return 0;
    if (job->facts.environment_posted)
        return jobtap_job_release_prolog (job, 0);
    return jobtap_request_setup (job);
}

/* The plugin was not there when the job's tasks ended, or got an exception
 * before: the prolog or somebody else holds the job still. An epilog can be begun
 * by flux_jobtap_epilog_start() in callbacks only: this is the event that it
 * posts.
 */
static int post_epilog_start (struct jobtap_job *job)
{
    if (!jobtap_facts_epilog_due (&job->facts))
        return 0;
    if (flux_jobtap_event_post_pack (job->ctx->p,
                                     job->id,
                                     "epilog-start",
                                     "{s:s}",
                                     "description", DWS_EPILOG) < 0)
        return -1;
    job->facts.posted.epilog = true;
    return 0;
}

/* Begin the epilog first: without it the job might end with the prolog.
 */
static int resume_cleanup (struct jobtap_job *job)
{
    struct jobtap_facts *facts = &job->facts;

    if (post_epilog_start (job) < 0
        || jobtap_job_release_prolog (job, 1) < 0)
        return -1;
    if (!jobtap_facts_epilog_held (facts))
        return 0;
    if (jobtap_facts_abandoned (facts)) {
        jobtap_abandon (job);
        return 0;
    }
    if (jobtap_job_start_timer (job) < 0)
        return -1;
    return jobtap_request_post_run (job);
}

/* Send the last request about the job again. The dws service takes repetitions
 * as successes; if it is not there, it will ask for all jobs when it starts.
 */
static void resume_job (struct jobtap_job *job)
{
    struct jobtap *ctx = job->ctx;
    flux_jobid_t id = job->id;
    int rc = 0;

    switch (jobtap_job_state (job)) {
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
        safe_log_error (ctx->h, "dws: job %ju: resume", (uintmax_t)id);
}

/* The eventlog has been read: begin what is due, then end the rebuild epilogs, which
 * earlier loads of the plugin may have left, too. If nothing is due the job may end here.
 */
static void rebuild_done (struct jobtap_job *job)
{
    struct jobtap *ctx = job->ctx;
    flux_jobid_t id = job->id;
    size_t held = jobtap_facts_rebuilds (&job->facts);

    job->known = true;
    resume_job (job);
    while (held-- > 0) {
        if (flux_jobtap_epilog_finish (ctx->p, id, DWS_REBUILD, 0) < 0)
            safe_log_error (ctx->h, "dws: job %ju: " DWS_REBUILD, (uintmax_t)id);
    }
    jobtap_service_retry (ctx);
}

static void rebuild_failed (struct jobtap_job *job, const char *what)
{
    safe_log_error (job->ctx->h, "dws: %s: reading %s", job->idf58, what);
    rebuild_done (job);
}

/* The job manager has the jobspec as it was updated, the KVS as it was
 * submitted.
 */
static void jobspec_cb (flux_future_t *f, void *arg)
{
    struct jobtap_job *job = arg;
    json_t *resources;
    json_t *constraints = NULL;

    if (flux_kvs_lookup_get_unpack (f, "{s:o s?{s?{s?o}}}",
                                    "resources", &resources,
                                    "attributes",
                                    "system",
                                    "constraints", &constraints) < 0) {
        rebuild_failed (job, "jobspec");
        return;
    }
    if (!job->constraints)
        job->constraints = json_incref (constraints);
    json_decref (job->resources);
    job->resources = json_incref (resources);
    rebuild_done (job);
}

/* Other plugins may update resources, too. Ours were written if our dependency is gone.
 */
static void use_eventlog (struct jobtap_job *job, json_t *entries)
{
    if (jobtap_facts_apply_all (&job->facts, entries) < 0) {
        rebuild_failed (job, "eventlog");
        return;
    }
    job->updated = job->facts.depend_removed;
    json_decref (job->constraints);
    job->constraints = json_incref (jobtap_constraints_read (entries));
    if (!job->updated)
        rebuild_done (job);
    else if (await_kvs (job, "jobspec", jobspec_cb) < 0)
        rebuild_failed (job, "jobspec");
}

/* The eventlog has a JSON object on each line. */
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
    struct jobtap_job *job = arg;
    const char *s;
    json_t *entries;

    if (flux_kvs_lookup_get (f, &s) < 0
        || !(entries = decode_eventlog (s ? s : ""))) {
        rebuild_failed (job, "eventlog");
        return;
    }
    use_eventlog (job, entries);
    json_decref (entries);
}

static void getattr_cb (flux_future_t *f, void *arg)
{
    struct jobtap_job *job = arg;
    json_t *entries;

    if (flux_rpc_get_unpack (f, "{s:o}", "eventlog", &entries) == 0) {
        /* Outlive the future, which the next request destroys. */
        json_incref (entries);
        use_eventlog (job, entries);
        json_decref (entries);
    }
    else if (await_kvs (job, "eventlog", eventlog_cb) < 0)
        rebuild_failed (job, "eventlog");
}

int jobtap_rebuild_hold (struct jobtap_job *job)
{
    if (job->facts.posted.rebuild)
        return 0;
    if (flux_jobtap_epilog_start (job->ctx->p, DWS_REBUILD) < 0)
        return -1;
    job->facts.posted.rebuild = true;
    return 0;
}

int jobtap_rebuild (struct jobtap_job *job)
{
    return jobtap_job_await (job, &job->f_rebuild,
                             flux_rpc_pack (job->ctx->h,
                                            "job-manager.getattr",
                                            FLUX_NODEID_ANY,
                                            0,
                                            "{s:I s:[s]}",
                                            "id", (json_int_t)job->id,
                                            "attrs", "eventlog"),
                             -1., getattr_cb);
}

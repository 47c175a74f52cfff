/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws-jobtap.so: hold jobs that have #DW directives in DEPEND, in a prolog
 * and in an epilog while the dws service works for them.
 *
 * A job's record is made in job.new and found in its aux container after
 * that, so a job without directives costs one look-up per callback. The facts
 * about a job come from its events, seen live or read back from its eventlog
 * (facts.h); the plugin keeps nothing that a reload would lose.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "libdws/directive/directive.h"
#include "libutil/safelog.h"

#include "abandon.h"
#include "clock.h"
#include "conf.h"
#include "dependency.h"
#include "job.h"
#include "queue.h"
#include "rebuild.h"
#include "request.h"
#include "service.h"
#include "timelimit.h"
#include "user.h"
#include "validate.h"

#define PLUGIN_NAME "dws"

static struct jobtap_job *current_job (void *arg)
{
    return jobtap_job_lookup (arg, FLUX_JOBTAP_CURRENT_JOB);
}

/* The job manager only logs that a callback has failed: tell the user, too.
 */
static int callback_failed (struct jobtap_job *job, const char *what)
{
    char text[256];

    snprintf (text, sizeof (text), "%s: %s", what, strerror (errno));
    jobtap_job_raise (job, PLUGIN_NAME, text);
    return -1;
}

/* Flux adds the dependencies of a job that is submitted, and posts their events, before
 * job.new. job.new reports errors.
 */
static int create_cb (flux_plugin_t *p,
                      const char *topic,
                      flux_plugin_arg_t *args,
                      void *arg)
{
    struct jobtap_job *job;
    int state = -1;

    (void)flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:i}",
                                  "state", &state);
    if (state == FLUX_JOB_STATE_NEW
        && (job = jobtap_job_create (arg, args))
        && flux_jobtap_job_subscribe (p, job->id) < 0)
        safe_log_error (job->ctx->h, "dws: %s: %s", job->idf58, topic);
    return 0;
}

static int new_cb (flux_plugin_t *p,
                   const char *topic,
                   flux_plugin_arg_t *args,
                   void *arg)
{
    struct jobtap *ctx = arg;
    struct jobtap_job *job = current_job (ctx);
    int state;

    if (!job && !(job = jobtap_job_create (ctx, args))) {
        if (errno == 0)
            return 0;
        flux_jobtap_raise_exception (p,
                                     FLUX_JOBTAP_CURRENT_JOB,
                                     PLUGIN_NAME,
                                     0,
                                     "%s",
                                     strerror (errno));
        return -1;
    }
    job->accepted = true;
    /* A plugin hears of events in the order of subscription: one that was loaded before
     * this plugin, and subscribes here as is usual, comes first.
     */
    flux_jobtap_job_unsubscribe (p, job->id);
    if (flux_jobtap_job_subscribe (p, job->id) < 0
        || flux_plugin_arg_unpack (args,
                                   FLUX_PLUGIN_ARG_IN,
                                   "{s:i}",
                                   "state", &state) < 0)
        return callback_failed (job, topic);
    if (state == FLUX_JOB_STATE_NEW)
        job->known = true;
    else {
        job->taken = JOBTAP_TAKEN_YES;
        if (jobtap_rebuild (job) < 0)
            return callback_failed (job, topic);
    }
    return 0;
}

static int depend_cb (flux_plugin_t *p,
                      const char *topic,
                      flux_plugin_arg_t *args,
                      void *arg)
{
    struct jobtap_job *job;

    jobtap_dependency_depend (arg, args);
    /* While the eventlog is read, the rest is up to rebuild.c. */
    if (!(job = current_job (arg)) || !job->known)
        return 0;
    if (job->dw_error) {
        jobtap_job_raise (job, DWS_DEPENDENCY, job->dw_error);
        return -1;
    }
    if (flux_jobtap_dependency_add (p, job->id, DWS_DEPENDENCY) < 0)
        return callback_failed (job, "adding the dws-create dependency");
    job->facts.posted.depend = true;
    if (job->nameless) {
        if (jobtap_user_request (job) < 0)
            return callback_failed (job, DWS_TOPIC_USER);
        return 0;
    }
    if (job->expanded
        && flux_jobtap_jobspec_update_pack (p,
                                            "{s:O}",
                                            "attributes.system.dw",
                                            job->dw) < 0)
        return callback_failed (job, "recording the expanded directives");
    if (jobtap_request_create (job) < 0)
        return callback_failed (job, "dws.create");
    return 0;
}

static int run_cb (flux_plugin_t *p,
                   const char *topic,
                   flux_plugin_arg_t *args,
                   void *arg)
{
    struct jobtap_job *job;

    if (!(job = current_job (arg)))
        return 0;
    if (flux_jobtap_prolog_start (p, DWS_PROLOG) < 0)
        return callback_failed (job, "starting the dws-setup prolog");
    job->facts.posted.prolog = true;
    if (jobtap_request_setup (job) < 0)
        return callback_failed (job, "dws.setup");
    return 0;
}

/* To be called only from callbacks for the current job, in CLEANUP state. A job that the
 * dws service does not know gets no epilog: the service would never end it.
 */
static int begin_epilog (struct jobtap_job *job)
{
    struct jobtap *ctx = job->ctx;

    if (!jobtap_facts_epilog_due (&job->facts)
        || job->taken == JOBTAP_TAKEN_NO)
        return 0;
    if (flux_jobtap_epilog_start (ctx->p, DWS_EPILOG) < 0)
        return callback_failed (job, "starting the dws-epilog");
    job->facts.posted.epilog = true;
    if (jobtap_request_post_run (job) < 0)
        return callback_failed (job, "dws.post_run");
    return 0;
}

/* The eventlog must be read before it is known whether an epilog is due. Until rebuild.c
 * knows, another epilog keeps the job from ending.
 */
static int hold_epilog (struct jobtap_job *job)
{
    if (jobtap_rebuild_hold (job) < 0)
        return callback_failed (job, "starting the dws-rebuild epilog");
    return 0;
}

/* A job whose tasks were started, or asked for, is not over in CLEANUP: after an
 * exception they still have to be killed. For such a job the finish event, or the last
 * release of its nodes, begins the epilog.
 */
static int cleanup_cb (flux_plugin_t *p,
                       const char *topic,
                       flux_plugin_arg_t *args,
                       void *arg)
{
    struct jobtap_job *job;

    if (!(job = current_job (arg)))
        return 0;
    return job->known ? begin_epilog (job) : hold_epilog (job);
}

static int exception_event (struct jobtap_job *job, json_t *entry)
{
    int severity;

    if (json_unpack (entry,
                     "{s:{s:i}}",
                     "context",
                       "severity", &severity) < 0
        || severity != 0)
        return 0;
    if (jobtap_job_release_prolog (job, 1) < 0)
        safe_log_error (job->ctx->h, "dws: %s: finish prolog", job->idf58);
    if (jobtap_facts_in_epilog (&job->facts)) {
        if (jobtap_facts_is_timeout (&job->facts, entry))
            jobtap_abandon (job);
        else
            jobtap_request_teardown (job);
    }
    return 0;
}

/* The last release of nodes comes after the finish event. But tasks that were lost with
 * the leader, or never started, have none: there is an exception, and the release, often
 * before the eventlog has been read.
 */
static int release_event (struct jobtap_job *job, json_t *entry)
{
    if (!jobtap_facts_is_final_release (entry)
        || jobtap_job_state (job) != FLUX_JOB_STATE_CLEANUP)
        return 0;
    return job->known ? begin_epilog (job) : hold_epilog (job);
}

/* Does the entry change the queue or the bank, which decide the limits of a job?
 */
static bool is_move (const char *name, json_t *entry)
{
    json_t *context = json_object_get (entry, "context");

    return !strcmp (name, "jobspec-update")
        && (json_object_get (context, "attributes.system.queue")
            || json_object_get (context, "attributes.system.bank"));
}

/* Repeat the request for a job without nodes: it tells the dws service what has changed.
 * A job without the name of its user has made no request yet, nor has one for which the
 * callback for DEPEND is still to come.
 */
static void create_again (struct jobtap_job *job)
{
    bool asked = job->facts.posted.depend || job->facts.depend_added
                 || jobtap_job_is_queued (job);

    if (!job->nameless && asked && jobtap_job_is_early (job)
        && jobtap_request_create (job) < 0)
        safe_log_error (job->ctx->h, "dws: %s: dws.create", job->idf58);
}

static int event_cb (flux_plugin_t *p,
                     const char *topic,
                     flux_plugin_arg_t *args,
                     void *arg)
{
    const char *name = topic + strlen ("job.event.");
    struct jobtap_job *job;
    json_t *entry;
    bool waited;

    if (!(job = current_job (arg)))
        return 0;
    waited = jobtap_facts_waits (&job->facts);
    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:o}",
                                "entry", &entry) < 0
        || jobtap_facts_apply (&job->facts, entry) < 0) {
        safe_log (job->ctx->h, LOG_ERR, "dws: %s: bad event", job->idf58);
        return -1;
    }
    if (!strcmp (name, "release"))
        return release_event (job, entry);
    if (!job->known)
        return 0;
    if (jobtap_facts_waits (&job->facts) != waited || is_move (name, entry))
        create_again (job);
    if (!strcmp (name, "start"))
        jobtap_timelimit_prolong (job);
    if (!strcmp (name, "finish"))
        return begin_epilog (job);
    if (!strcmp (name, "exception"))
        return exception_event (job, entry);
    if (!strcmp (name, "epilog-start")
        && jobtap_facts_in_epilog (&job->facts)
        && jobtap_job_start_timer (job) < 0)
        safe_log_error (job->ctx->h, "dws: %s: epilog timer", job->idf58);
    return 0;
}

static int query_cb (flux_plugin_t *p,
                     const char *topic,
                     flux_plugin_arg_t *args,
                     void *arg)
{
    struct jobtap *ctx = arg;
    json_t *jobs;

    if (!(jobs = jobtap_service_list (ctx)))
        return -1;
    return flux_plugin_arg_pack (args,
                                 FLUX_PLUGIN_ARG_OUT,
                                 "{s:f s:o}",
                                 "epilog-timeout", ctx->epilog_timeout,
                                 "jobs", jobs);
}

static void plugin_destroy (struct jobtap *ctx)
{
    if (ctx) {
        jobtap_dependency_detach (ctx);
        jobtap_destroy (ctx);
    }
}

__attribute__ ((visibility ("default")))
int flux_plugin_init (flux_plugin_t *p)
{
    struct jobtap *ctx;

    if (!(ctx = jobtap_create (p))
        || !(ctx->clock = jobtap_clock_create (ctx, jobtap_restart_timers))
        || flux_plugin_aux_set (p,
                                "dws::ctx",
                                ctx,
                                (flux_free_f)plugin_destroy) < 0) {
        plugin_destroy (ctx);
        return -1;
    }
    const struct flux_plugin_handler tab[] = {
        { "job.validate", jobtap_validate_cb, ctx },
        { "job.create", create_cb, ctx },
        { "job.new", new_cb, ctx },
        { "job.state.depend", depend_cb, ctx },
        { "job.state.priority", jobtap_queue_priority_cb, ctx },
        { "job.priority.get", jobtap_queue_priority_cb, ctx },
        { "job.state.run", run_cb, ctx },
        { "job.state.cleanup", cleanup_cb, ctx },
        { "job.state.inactive", jobtap_dependency_inactive_cb, ctx },
        { "job.event.*", event_cb, ctx },
        { "job.dependency.dws-in", jobtap_dependency_cb, ctx },
        { "job.dependency.dws-out", jobtap_dependency_cb, ctx },
        { "conf.update", jobtap_conf_update_cb, ctx },
        { "plugin.query", query_cb, ctx },
        { 0 },
    };
    jobtap_queue_start (ctx);
    if (jobtap_conf_init (ctx) < 0
        || flux_plugin_register (p, PLUGIN_NAME, tab) < 0
        || jobtap_service_register (ctx) < 0
        || jobtap_validate_register (ctx) < 0)
        return -1;
    /* The answer is asked for when the job manager has told of all jobs. */
    jobtap_hello (ctx);
    return 0;
}

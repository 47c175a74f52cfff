/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws-jobtap.so: hold jobs that have #DW directives in DEPEND, in a prolog
 * and in an epilog while the dws service works for them.
 *
 * A job's record is made in job.new and found in its aux container after
 * that, so a job without directives costs one look-up per callback. What is
 * known about a job comes from its events, seen live or read back from its
 * eventlog (facts.h); the plugin keeps nothing that a reload would lose.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <syslog.h>
#include <flux/hostlist.h>

#include "libdws/directive/command.h"
#include "libdws/directive/directive.h"
#include "libdws/directive/presets.h"
#include "libdws/storage/first.h"
#include "libdws/storage/ownrabbit.h"
#include "libdws/util/bounds.h"
#include "libdws/util/lists.h"
#include "libutil/safelog.h"

#include "abandon.h"
#include "clock.h"
#include "conf.h"
#include "dependency.h"
#include "job.h"
#include "limits.h"
#include "queue.h"
#include "rebuild.h"
#include "request.h"
#include "service.h"
#include "user.h"

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

/* Where the job's nodes are to be. Which rabbits there are is not known here.
 */
static int check_where (json_t *rabbits, json_t *near, bool storage,
                        size_t limit, dws_error_t *error)
{
    const char *name = rabbits ? "dw_rabbits" : "dw_near";
    struct hostlist *hl;

    if (!rabbits && !near)
        return 0;
    if (!storage)
        return dws_error (error, EINVAL, "%s: there are no #DW directives",
                          name);
    if (json_string_length (rabbits) > limit
        || json_string_length (near) > limit)
        return dws_error (error, EINVAL, "%s has more than %zu bytes, which is"
                          " the limit", name, limit);
    hl = dws_hostlist_decode (json_string_value (rabbits));
    hostlist_destroy (hl);
    if (rabbits && (!hl || json_string_length (rabbits) == 0))
        return dws_error (error, EINVAL, "dw_rabbits must be a hostlist of"
                          " rabbits");
    if (near && json_string_length (near) == 0)
        return dws_error (error, EINVAL, "dw_near must be a job id or the name"
                          " of a persistent file system");
    return 0;
}

/* Can the job have its data before it has nodes, if it asks for that?
 */
static int check_first (json_t *first, unsigned int commands, json_t *resources,
                        dws_error_t *error)
{
    const char *fault;

    if (first && !json_is_boolean (first)
        && (!json_is_integer (first) || json_integer_value (first) > 1
            || json_integer_value (first) < 0))
        return dws_error (error, EINVAL, "dw_data_first must be true or false");
    if (!first || (!json_is_true (first) && json_integer_value (first) == 0))
        return 0;
    if ((fault = dws_first_fault (commands, resources)))
        return dws_error (error, EINVAL, "dw_data_first: %s", fault);
    return 0;
}

/* A key that is like ours, and none of them, would be ignored: "DW", "dw_rabbit".
 */
static int check_keys (flux_plugin_arg_t *args, dws_error_t *error)
{
    static const char *const keys[] = {
        "dw", "dw_data_first", "dw_failure_tolerance", "dw_group", "dw_near",
        "dw_rabbits",
    };
    const size_t count = sizeof (keys) / sizeof (keys[0]);
    json_t *system = NULL;
    json_t *value;
    const char *key;

    (void)flux_plugin_arg_unpack (args,
                                  FLUX_PLUGIN_ARG_IN,
                                  "{s:{s:{s:o}}}",
                                  "jobspec",
                                  "attributes",
                                  "system", &system);
    json_object_foreach (system, key, value) {
        size_t i = 0;

        if (strncasecmp (key, "dw", 2) != 0
            || (key[2] != '\0' && key[2] != '_' && key[2] != '-'))
            continue;
        while (i < count && strcmp (key, keys[i]) != 0)
            i++;
        if (i == count)
            return dws_error (error, EINVAL, "attributes.system: '%.60s' is not"
                              " known; dw, dw_data_first, dw_failure_tolerance,"
                              " dw_group, dw_near and dw_rabbits are", key);
    }
    return 0;
}

/* Resources and constraints go to the dws service, and to the scheduler. Those of a job
 * that is updated have what the service has added to them.
 */
static int check_bounds (flux_plugin_arg_t *args, bool ours, dws_error_t *error)
{
    json_t *resources = NULL;
    json_t *constraints = NULL;

    (void)flux_plugin_arg_unpack (args,
                                  FLUX_PLUGIN_ARG_IN,
                                  "{s:{s?o s?{s?{s?o}}}}",
                                  "jobspec",
                                  "resources", &resources,
                                  "attributes",
                                  "system",
                                  "constraints", &constraints);
    if (dws_bounds_check (resources, "resources", ours, error) < 0)
        return -1;
    return dws_bounds_check (constraints, "constraints", ours, error);
}

static int validate_cb (flux_plugin_t *p,
                        const char *topic,
                        flux_plugin_arg_t *args,
                        void *arg)
{
    struct jobtap *ctx = arg;
    json_t *dw = NULL;
    json_t *tolerance = NULL;
    json_t *group = NULL;
    json_t *rabbits = NULL;
    json_t *near = NULL;
    json_t *first = NULL;
    unsigned int commands = 0;
    json_t *presets;
    json_t *resources = NULL;
    struct dws_directives *dirs;
    size_t count = 0;
    dws_error_t error;
    int rc;

    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:{s?o s?{s?{s?o s?o s?o s?o s?o s?o}}}}",
                                "jobspec",
                                "resources", &resources,
                                "attributes",
                                "system",
                                "dw", &dw,
                                "dw_failure_tolerance", &tolerance,
                                "dw_group", &group,
                                "dw_rabbits", &rabbits,
                                "dw_near", &near,
                                "dw_data_first", &first) < 0)
        return flux_jobtap_reject_job (p, args, "attributes.system: malformed");
    if (check_keys (args, &error) < 0)
        return flux_jobtap_reject_job (p, args, "%s", error.text);
    if (dw) {
        presets = jobtap_args_presets (ctx, args, DWS_PRESETS_USER);
        dirs = dws_directives_parse (dw, presets, &dws_directive_limits_default,
                                     &error);
        json_decref (presets);
        if (!dirs)
            return flux_jobtap_reject_job (p, args, "dw: %s", error.text);
        count = dws_directives_count (dirs);
        commands = dws_commands (dirs);
        rc = jobtap_limits_lifetime (ctx, dirs, &error);
        if (rc == 0)
            rc = jobtap_limits_validate (ctx, args, current_job (ctx), dirs,
                                         &error);
        dws_directives_destroy (dirs);
        if (rc < 0)
            return flux_jobtap_reject_job (p, args, "dw: %s", error.text);
    }
    /* A job that is updated has been through this, and its resources have the
     * storage that its directives ask for. */
    if (!current_job (ctx)
        && dws_ownrabbit_check (resources, count > 0,
                                ctx->config->rabbit_resources, &error) < 0)
        return flux_jobtap_reject_job (p, args, "%s", error.text);
    if (check_first (first, commands, resources, &error) < 0
        || check_where (rabbits, near, count > 0, DWS_DIRECTIVE_BYTES, &error) < 0)
        return flux_jobtap_reject_job (p, args, "%s", error.text);
    if (!dw)
        return 0;
    if (jobtap_tolerance_check (tolerance, &error) < 0
        || check_bounds (args, current_job (ctx) != NULL, &error) < 0)
        return flux_jobtap_reject_job (p, args, "%s", error.text);
    if (group && !json_is_integer (group)
        && (json_string_length (group) == 0
            || json_string_length (group) > DWS_DIRECTIVE_BYTES))
        return flux_jobtap_reject_job (p,
                                       args,
                                       "dw_group must be the name of a group"
                                       " or its number");
    return 0;
}

static int new_cb (flux_plugin_t *p,
                   const char *topic,
                   flux_plugin_arg_t *args,
                   void *arg)
{
    struct jobtap *ctx = arg;
    struct jobtap_job *job;
    int state;

    if (!(job = jobtap_job_create (ctx, args))) {
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

/* To be called only from callbacks for the current job, in CLEANUP state. Nobody would
 * end the epilog of a job that the dws service does not know.
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

/* Whether an epilog is due is not known before the eventlog was read. Without one the
 * job may be over before: it gets one that lasts until rebuild.c knows.
 */
static int hold_epilog (struct jobtap_job *job)
{
    if (jobtap_rebuild_hold (job) < 0)
        return callback_failed (job, "starting the dws-rebuild epilog");
    return 0;
}

/* A job whose tasks were started is not over in CLEANUP: after an exception
 * they still have to be killed. For such a job the finish event begins the
 * epilog.
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

/* The last release of nodes comes after the finish event. But tasks that were
 * lost with the leader have none: there is an exception, and the release in the
 * same turn, often before the eventlog has been read.
 */
static int release_event (struct jobtap_job *job, json_t *entry)
{
    if (!jobtap_facts_is_final_release (entry)
        || jobtap_job_state (job) != FLUX_JOB_STATE_CLEANUP)
        return 0;
    return job->known ? begin_epilog (job) : hold_epilog (job);
}

/* Who holds the job besides us has changed: only data that is staged in first waits for
 * that, and the dws service is told so by asking it again.
 */
static void see_waiting (struct jobtap_job *job, bool waited)
{
    if (jobtap_facts_waits (&job->facts) != waited
        && jobtap_facts_depend_held (&job->facts)
        && jobtap_job_state (job) == FLUX_JOB_STATE_DEPEND
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
    see_waiting (job, waited);
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
        { "job.validate", validate_cb, ctx },
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
        || jobtap_service_register (ctx) < 0)
        return -1;
    /* The answer is asked for when the job manager has told of all jobs. */
    jobtap_hello (ctx);
    return 0;
}

// vi: ts=4 sw=4 expandtab

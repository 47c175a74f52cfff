/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Records of rabbit jobs; see job.h.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "libdws/directive/command.h"
#include "libdws/directive/directive.h"
#include "libdws/directive/presets.h"
#include "libdws/util/clean.h"
#include "libdws/util/jsonmake.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"

#include "clock.h"
#include "job.h"

#define JOB_AUX "dws::job"

/* Requests that wait for a job's eventlog to be read need not wait any more
 * when the job ends meanwhile. The job can still be looked up at this moment,
 * so the requests are handled in a later turn of the reactor.
 */
static void retry_later (struct jobtap *ctx)
{
    flux_timer_watcher_reset (ctx->retry, 0., 0.);
    flux_watcher_start (ctx->retry);
}

static void record_destroy (struct jobtap_job *job)
{
    if (job) {
        ERRNO_SAFE_BLOCK;
        if (job->ctx && job->f_rebuild && !job->known)
            retry_later (job->ctx);
        if (job->prev)
            job->prev->next = job->next;
        else if (job->ctx && job->ctx->jobs == job)
            job->ctx->jobs = job->next;
        if (job->next)
            job->next->prev = job->prev;
        flux_watcher_destroy (job->timer);
        flux_future_destroy (job->f_request);
        flux_watcher_destroy (job->again);
        flux_future_destroy (job->f_rebuild);
        flux_future_destroy (job->f_abandon);
        flux_future_destroy (job->f_expiration);
        json_decref (job->dw);
        json_decref (job->constraints);
        jobtap_facts_clear (&job->facts);
        json_decref (job->resources);
        json_decref (job->where);
        free (job->dw_error);
        free (job->group);
        free (job);
    }
}

static void ctx_link (struct jobtap *ctx, struct jobtap_job *job)
{
    job->ctx = ctx;
    job->next = ctx->jobs;
    if (job->next)
        job->next->prev = job;
    ctx->jobs = job;
}

struct jobtap *jobtap_create (flux_plugin_t *p)
{
    struct jobtap *ctx;

    if (!(ctx = calloc (1, sizeof (*ctx))))
        return NULL;
    ctx->p = p;
    if (!(ctx->config = dws_config_plugin (NULL, NULL))
        || !(ctx->h = flux_jobtap_get_flux (p))
        || !(ctx->deferred = flux_msglist_create ())) {
        jobtap_destroy (ctx);
        return NULL;
    }
    return ctx;
}

/* The dws service sends no response.
 */
static void say_loaded (struct jobtap *ctx, bool loaded)
{
    flux_future_t *f;

    if (!(f = flux_rpc_pack (ctx->h, DWS_TOPIC_PLUGIN, FLUX_NODEID_ANY,
                             FLUX_RPC_NORESPONSE, "{s:b}", "loaded", loaded)))
        safe_log_error (ctx->h, DWS_TOPIC_PLUGIN);
    flux_future_destroy (f);
}

void jobtap_hello (struct jobtap *ctx)
{
    say_loaded (ctx, true);
    ctx->greeted = true;
}

void jobtap_destroy (struct jobtap *ctx)
{
    if (ctx) {
        ERRNO_SAFE_BLOCK;
        const flux_msg_t *msg;

        if (ctx->greeted)
            say_loaded (ctx, false);
        while (ctx->deferred && flux_msglist_first (ctx->deferred)) {
            msg = flux_msglist_pop (ctx->deferred);
            (void)flux_respond_error (ctx->h, msg, ENOSYS, NULL);
            flux_msg_decref (msg);
        }
        jobtap_clock_destroy (ctx->clock);
        flux_msglist_destroy (ctx->deferred);
        flux_watcher_destroy (ctx->retry);
        for (struct jobtap_job *job = ctx->jobs; job; job = job->next)
            job->ctx = NULL;
        dws_config_destroy (ctx->config);
        free (ctx);
    }
}

static json_t *number_text (json_int_t n)
{
    return json_sprintf ("%" JSON_INTEGER_FORMAT, n);
}

/* The name of the user is not looked up here, as that might keep the job manager
 * waiting (user.h).
 */
json_t *jobtap_args_presets (struct jobtap *ctx,
                             flux_plugin_arg_t *args,
                             const char *user)
{
    json_int_t id;
    json_int_t userid;
    json_t *place;
    json_t *values = NULL;
    json_t *bound = NULL;

    if (!ctx->config->presets || !(place = jobtap_args_place (args)))
        return NULL;
    values = json_pack ("{s:s* s:O* s:O*}",
                        "USER", user,
                        "BANK", json_object_get (place, "bank"),
                        "QUEUE", json_object_get (place, "queue"));
    json_decref (place);
    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:I s:I}",
                                "id", &id, "userid", &userid) == 0) {
        json_object_set_new (values, "JOBID", number_text (id));
        json_object_set_new (values, "UID", number_text (userid));
    }
    if (values)
        bound = dws_presets_bind (ctx->config->presets, values, NULL);
    ERRNO_SAFE (json_decref (values));
    return bound;
}

static struct dws_directives *parse_presets (struct jobtap *ctx, json_t *dw,
                                             flux_plugin_arg_t *args,
                                             const char *user,
                                             dws_error_t *error)
{
    json_t *presets = jobtap_args_presets (ctx, args, user);
    struct dws_directives *dirs = dws_directives_parse (dw, presets, NULL,
                                                        error);

    ERRNO_SAFE (json_decref (presets));
    return dirs;
}

/* Put the job's id, and the name of its user once there is one, into paths. A job whose
 * paths need a name that is not known yet has to wait for it.
 */
static int fill_paths (struct jobtap_job *job, struct dws_directives *dirs,
                       const char *user, dws_error_t *error)
{
    char id[32];

    if (flux_job_id_encode (job->id, "f58plain", id, sizeof (id)) < 0)
        return dws_error (error, errno, "{{id}}: %s", strerror (errno));
    if (!user && (dws_directives_variables (dirs) & DWS_VARIABLE_USER))
        job->nameless = true;
    return dws_directives_fill (dirs, user, id, error);
}

/* Directives that are valid without the presets are taken as they are, so that later
 * changes of presets do not change this job. Limits are not checked again: they
 * applied when the job was submitted. Text that is only valid with some name of the
 * user has to wait for the right one.
 */
static int job_parse_dw (struct jobtap_job *job, json_t *dw,
                         flux_plugin_arg_t *args, const char *user)
{
    struct dws_directives *dirs;
    dws_error_t error;
    int rc = -1;

    job->commands = 0;
    if (!(dirs = dws_directives_parse (dw, NULL, NULL, NULL))) {
        dirs = parse_presets (job->ctx, dw, args, user, &error);
        if (!dirs && !user) {
            dirs = parse_presets (job->ctx, dw, args, DWS_PRESETS_USER, &error);
            job->nameless = dirs != NULL;
        }
        job->expanded = dirs != NULL;
    }
    else if (dws_directives_variables (dirs))
        job->expanded = true;
    if (dirs && fill_paths (job, dirs, user, &error) == 0) {
        job->commands = dws_commands (dirs);
        if ((job->dw = dws_directives_encode (dirs)))
            rc = 0;
    }
    else if (errno == EINVAL
             && (job->dw_error = strdup (error.text))
             && (job->dw = json_array ()))
        rc = 0;
    dws_directives_destroy (dirs);
    return rc;
}

/* A name, or a number as text. Any other value was rejected at submission, or is from
 * a job that is older than the plugin.
 */
static char *group_text (json_t *group)
{
    char *s = NULL;

    if (json_is_string (group))
        return strdup (json_string_value (group));
    if (!json_is_integer (group)) {
        errno = EINVAL;
        return NULL;
    }
    if (asprintf (&s, "%" JSON_INTEGER_FORMAT, json_integer_value (group)) < 0)
        return NULL;
    return s;
}

int jobtap_tolerance_check (json_t *tolerance, dws_error_t *error)
{
    if (tolerance
        && (!json_is_integer (tolerance)
            || json_integer_value (tolerance) < 0
            || json_integer_value (tolerance) > INT32_MAX))
        return dws_error (error, EINVAL, "dw_failure_tolerance must be a number"
                          " of nodes, 0 or more");
    return 0;
}

struct jobtap_job *jobtap_job_create (struct jobtap *ctx,
                                      flux_plugin_arg_t *args)
{
    struct jobtap_job *job;
    flux_jobid_t id;
    json_int_t userid;
    json_t *tolerance = NULL;
    json_t *group = NULL;
    const char *rabbits = NULL;
    const char *near = NULL;
    json_t *resources;
    json_t *dw = NULL;
    int urgency = FLUX_JOB_URGENCY_DEFAULT;
    dws_error_t error = { "" };

    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:I s:I s?i s:{s:o s?{s?{s?o s?o s?o s?s s?s}}}}",
                                "id", &id,
                                "userid", &userid,
                                "urgency", &urgency,
                                "jobspec",
                                "resources", &resources,
                                "attributes",
                                "system",
                                "dw", &dw,
                                "dw_failure_tolerance", &tolerance,
                                "dw_group", &group,
                                "dw_rabbits", &rabbits,
                                "dw_near", &near) < 0) {
        errno = EPROTO;
        return NULL;
    }
    if (!dw) {
        errno = 0;
        return NULL;
    }
    if (!(job = calloc (1, sizeof (*job))))
        return NULL;
    ctx_link (ctx, job);
    job->id = id;
    job->userid = userid;
    job->facts.owner = getuid (); // the job manager runs as the instance owner
    job->facts.urgency = urgency;
    if (jobtap_tolerance_check (tolerance, &error) == 0)
        job->failure_tolerance = json_integer_value (tolerance);
    if (flux_job_id_encode (id, "f58", job->idf58, sizeof (job->idf58)) < 0
        || (group && !(job->group = group_text (group)))
        || !(job->where = json_pack ("{s:s* s:s*}", "rabbits", rabbits,
                                     "near", near))
        || job_parse_dw (job, dw, args, NULL) < 0
        || (*error.text && !job->dw_error
            && !(job->dw_error = strdup (error.text)))
        || !(job->resources = json_deep_copy (resources)))
        goto error;
    if (json_array_size (job->dw) == 0 && !job->dw_error) {
        errno = 0;
        goto error;
    }
    if (flux_jobtap_job_aux_set (ctx->p,
                                 FLUX_JOBTAP_CURRENT_JOB,
                                 JOB_AUX,
                                 job,
                                 (flux_free_f)record_destroy) < 0)
        goto error;
    return job;
error:
    record_destroy (job);
    return NULL;
}

static int read_again (struct jobtap_job *job, flux_plugin_arg_t *args,
                       const char *user)
{
    json_t *dw;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:{s:{s:{s:o}}}}",
                                "jobspec",
                                "attributes",
                                "system",
                                "dw", &dw) < 0) {
        errno = EPROTO;
        return -1;
    }
    json_decref (job->dw);
    job->dw = NULL;
    return job_parse_dw (job, dw, args, user);
}

int jobtap_job_name (struct jobtap_job *job, const char *user)
{
    flux_plugin_arg_t *args;
    int rc;

    if (!(args = flux_jobtap_job_lookup (job->ctx->p, job->id)))
        return -1;
    rc = read_again (job, args, user);
    ERRNO_SAFE (flux_plugin_arg_destroy (args));
    if (rc < 0 || job->dw_error)
        return rc;
    if (flux_jobtap_jobspec_update_id_pack (job->ctx->p, job->id, "{s:O}",
                                            "attributes.system.dw",
                                            job->dw) < 0)
        return -1;
    job->nameless = false;
    return 0;
}

struct jobtap_job *jobtap_job_lookup (struct jobtap *ctx, flux_jobid_t id)
{
    return flux_jobtap_job_aux_get (ctx->p, id, JOB_AUX);
}

int jobtap_job_state (struct jobtap_job *job)
{
    flux_plugin_arg_t *args;
    int state;

    if (!(args = flux_jobtap_job_lookup (job->ctx->p, job->id)))
        return -1;
    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:i}",
                                "state", &state) < 0)
        state = -1;
    flux_plugin_arg_destroy (args);
    return state;
}

bool jobtap_job_is_queued (struct jobtap_job *job)
{
    int state = jobtap_job_state (job);

    return state == FLUX_JOB_STATE_PRIORITY || state == FLUX_JOB_STATE_SCHED;
}

bool jobtap_job_is_early (struct jobtap_job *job)
{
    int state = jobtap_job_state (job);

    return state == FLUX_JOB_STATE_NEW || state == FLUX_JOB_STATE_DEPEND
        || state == FLUX_JOB_STATE_PRIORITY || state == FLUX_JOB_STATE_SCHED;
}

json_t *jobtap_args_place (flux_plugin_arg_t *args)
{
    const char *bank = NULL;
    const char *queue = NULL;
    json_t *o;

    (void)flux_plugin_arg_unpack (args,
                                  FLUX_PLUGIN_ARG_IN,
                                  "{s:{s?{s?{s?s s?s}}}}",
                                  "jobspec",
                                  "attributes",
                                  "system",
                                  "bank", &bank,
                                  "queue", &queue);
    if (!(o = json_pack ("{s:s* s:s*}", "bank", bank, "queue", queue)))
        errno = ENOMEM;
    return o;
}

/* The choice of the user, until the dws service has decided. An attribute that is given
 * to flux submit without a value is 1.
 */
static json_t *encode_first (json_t *value)
{
    if (!value)
        return json_null ();
    return json_boolean (json_is_true (value) || json_integer_value (value) != 0);
}

json_t *jobtap_job_place (struct jobtap_job *job)
{
    flux_plugin_arg_t *args;
    json_t *first = NULL;
    json_t *constraints = NULL;
    json_t *o;

    if (!(args = flux_jobtap_job_lookup (job->ctx->p, job->id)))
        return json_object ();
    o = jobtap_args_place (args);
    (void)flux_plugin_arg_unpack (args,
                                  FLUX_PLUGIN_ARG_IN,
                                  "{s:{s?{s?{s?o s?o}}}}",
                                  "jobspec",
                                  "attributes",
                                  "system",
                                  "dw_data_first", &first,
                                  "constraints", &constraints);
    if (job->updated)
        constraints = job->constraints;
    dws_json_set (&o, "first", encode_first (first));
    dws_json_set (&o, "waits", json_boolean (jobtap_facts_waits (&job->facts)));
    if (constraints)
        dws_json_set (&o, "constraints", json_incref (constraints));
    ERRNO_SAFE (flux_plugin_arg_destroy (args));
    return o;
}

json_t *jobtap_job_encode (struct jobtap_job *job)
{
    const struct jobtap_facts *facts = &job->facts;
    const char *phase;
    json_t *dw = job->dw;
    json_t *place;
    json_t *o = NULL;

    if (!job->accepted)
        return json_null ();
    if (!(phase = jobtap_facts_phase (facts, jobtap_job_state (job))))
        return json_null ();
    /* A nameless job has no workflow. */
    if (job->nameless) {
        if (jobtap_job_is_early (job))
            return json_null ();
        dw = NULL;
    }
    if (!(place = jobtap_job_place (job))
        || !(o = json_pack ("{s:I s:I s:s s:o s:O s:i s:s* s:b s:b s:b s:b s:f s:f}",
                         "id", (json_int_t)job->id,
                         "userid", (json_int_t)job->userid,
                         "phase", phase,
                         "dw", dw ? json_incref (dw) : json_array (),
                         "resources", job->resources,
                         "failure_tolerance", job->failure_tolerance,
                         "group", job->group,
                         "run_started", facts->run_started,
                         "exception", facts->exception,
                         "teardown", jobtap_facts_cut_short (facts),
                         "abandoned", jobtap_facts_abandoned (facts),
                         "t_prolog", facts->t_prolog,
                         "t_epilog", facts->t_epilog))
        || json_object_update (o, place) < 0
        || json_object_update (o, job->where) < 0) {
        json_decref (place);
        json_decref (o);
        errno = ENOMEM;
        return NULL;
    }
    json_decref (place);
    return o;
}

void jobtap_job_raise (struct jobtap_job *job,
                       const char *type,
                       const char *text)
{
    struct jobtap *ctx = job->ctx;
    flux_jobid_t id = job->id;
    char note[2048];

    dws_clean (text, note, sizeof (note));
    if (flux_jobtap_raise_exception (ctx->p, id, type, 0, "%s", note) < 0)
        safe_log_error (ctx->h, "dws: job %ju: raise %s", (uintmax_t)id, type);
}

int jobtap_job_release_prolog (struct jobtap_job *job, int status)
{
    if (!jobtap_facts_prolog_held (&job->facts))
        return 0;
    /* Set first: finishing may call back before it returns. */
    job->facts.posted.prolog_end = true;
    if (flux_jobtap_prolog_finish (job->ctx->p,
                                   job->id,
                                   DWS_PROLOG,
                                   status) < 0) {
        job->facts.posted.prolog_end = false;
        return -1;
    }
    return 0;
}

int jobtap_job_release_epilog (struct jobtap_job *job, int status)
{
    if (!jobtap_facts_epilog_held (&job->facts))
        return 0;
    flux_watcher_stop (job->timer);
    job->facts.posted.epilog_end = true;
    if (flux_jobtap_epilog_finish (job->ctx->p,
                                   job->id,
                                   DWS_EPILOG,
                                   status) < 0) {
        /* The call failed before it posted anything, so the job is still there. */
        job->facts.posted.epilog_end = false;
        return -1;
    }
    return 0;
}

static void epilog_timer_cb (flux_reactor_t *r,
                      flux_watcher_t *w,
                      int revents,
                      void *arg)
{
    struct jobtap_job *job = arg;
    char text[128];

    snprintf (text,
              sizeof (text),
              "rabbit storage was not cleaned up within %.6g s",
              job->ctx->epilog_timeout);
    /* The exception callback does the rest, as it does when an admin raises
     * the same exception by hand.
     */
    jobtap_job_raise (job, DWS_EPILOG_TIMEOUT, text);
}

int jobtap_job_start_timer (struct jobtap_job *job)
{
    flux_reactor_t *r = flux_get_reactor (job->ctx->h);
    double after;

    if (job->ctx->epilog_timeout <= 0
        || job->timer
        || !jobtap_facts_in_epilog (&job->facts))
        return 0;
    after = jobtap_clock_left (job->ctx->clock,
                               job->facts.t_epilog,
                               job->ctx->epilog_timeout);
    if (!(job->timer = flux_timer_watcher_create (r,
                                                  after,
                                                  0,
                                                  epilog_timer_cb,
                                                  job)))
        return -1;
    flux_watcher_start (job->timer);
    return 0;
}

void jobtap_restart_timers (struct jobtap *ctx)
{
    for (struct jobtap_job *job = ctx->jobs; job; job = job->next) {
        flux_watcher_destroy (job->timer);
        job->timer = NULL;
        if (!job->f_abandon && jobtap_job_start_timer (job) < 0)
            safe_log_error (ctx->h, "dws: %s: epilog timer", job->idf58);
    }
}

void jobtap_set_timeout (struct jobtap *ctx, double timeout)
{
    if (timeout == ctx->epilog_timeout)
        return;
    ctx->epilog_timeout = timeout;
    safe_log (ctx->h, LOG_INFO, "dws: epilog-timeout is %g s", timeout);
    jobtap_restart_timers (ctx);
}

int jobtap_job_await (struct jobtap_job *job,
                      flux_future_t **slot,
                      flux_future_t *f,
                      double timeout,
                      flux_continuation_f cb)
{
    if (!f)
        return -1;
    if (flux_future_then (f, timeout, cb, job) < 0) {
        ERRNO_SAFE (flux_future_destroy (f));
        return -1;
    }
    flux_future_destroy (*slot);
    *slot = f;
    return 0;
}

/* SPDX-License-Identifier: LGPL-3.0-only */
/* perilog.c - jobtap plugin perilog.so: runs the commands of
 * [job-manager.prolog] and [job-manager.epilog].
 *
 * With per-rank = true a command runs once for each node of the job, otherwise
 * once.  All made-up nodes being this host, HOSTNAME says which node a process
 * stands for.  A job that had a prolog gets the epilog too, whether or not it
 * ran.  Loaded as in flux-core, by the [job-manager] plugins configuration.
 */
#include <math.h>
#include <stdlib.h>
#include <flux/jobtap.h>

#include "jobutil.h"
#include "perilog.h"

/* Callbacks
 */

/* Without a subscription there is no job.event.* callback.
 */
static void subscribe (struct perilog *ctx)
{
    if ((ctx->prolog.command || ctx->epilog.command)
        && flux_jobtap_job_subscribe (ctx->p, FLUX_JOBTAP_CURRENT_JOB) < 0)
        flux_log_error (flux_jobtap_get_flux (ctx->p), "job subscription");
}

static int state_run_cb (flux_plugin_t *p, const char *topic,
                         flux_plugin_arg_t *args, void *arg)
{
    struct perilog *ctx = arg;
    flux_jobid_t id;
    uint32_t userid;
    json_t *R;

    subscribe (ctx);
    if (!ctx->prolog.command)
        return 0;
    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:I s:i s:o}",
                                "id", &id,
                                "userid", &userid,
                                "R", &R) < 0
        || flux_jobtap_prolog_start (p, PROLOG_TEXT) < 0) {
        flux_log_error (flux_jobtap_get_flux (p), "prolog-start");
        return -1;
    }
    if (run_start (ctx, true, id, userid, R) < 0) {
        (void)flux_jobtap_raise_exception (p, id, "prolog", 0,
                                           "could not start prolog");
        (void)flux_jobtap_prolog_finish (p, id, PROLOG_TEXT, 1);
    }
    return 0;
}

static int finish_cb (flux_plugin_t *p, const char *topic,
                      flux_plugin_arg_t *args, void *arg)
{
    struct perilog *ctx = arg;
    flux_jobid_t id;
    uint32_t userid;
    json_t *R;

    if (!ctx->epilog.command)
        return 0;
    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:I s:i s:o}",
                                "id", &id,
                                "userid", &userid,
                                "R", &R) < 0
        || flux_jobtap_epilog_start (p, EPILOG_TEXT) < 0) {
        flux_log_error (flux_jobtap_get_flux (p), "epilog-start");
        return -1;
    }
    if (run_start (ctx, false, id, userid, R) < 0)
        (void)flux_jobtap_epilog_finish (p, id, EPILOG_TEXT, 1);
    return 0;
}

struct past {
    bool prolog_start;
    bool prolog_finish;
    bool epilog_start;
    bool epilog_finish;
};

/* What the eventlog says of prolog and epilog; those of others are not ours.
 */
static int read_past (flux_t *h, flux_jobid_t id, struct past *past)
{
    flux_future_t *f = NULL;
    const char *text;
    json_t *entries = NULL;
    json_t *entry;
    size_t index;
    char key[64];
    int rc = -1;

    if (flux_job_kvs_key (key, sizeof (key), id, "eventlog") > 0
        && (f = flux_kvs_lookup (h, NULL, 0, key))
        && flux_kvs_lookup_get (f, &text) == 0
        && (entries = eventlog_parse (text))) {
        json_array_foreach (entries, index, entry) {
            const char *name;
            const char *what;
            if (json_unpack (entry, "{s:s s:{s:s}}",
                             "name", &name,
                             "context", "description", &what) < 0)
                continue;
            if (streq (what, PROLOG_TEXT)) {
                past->prolog_start |= streq (name, "prolog-start");
                past->prolog_finish |= streq (name, "prolog-finish");
            }
            else if (streq (what, EPILOG_TEXT)) {
                past->epilog_start |= streq (name, "epilog-start");
                past->epilog_finish |= streq (name, "epilog-finish");
            }
        }
        rc = 0;
    }
    json_decref (entries);
    flux_future_destroy (f);
    return rc;
}

/* A job that is older than this plugin, or than this instance, which may have
 * been killed: what was not finished is done again.
 */
static int new_cb (flux_plugin_t *p, const char *topic,
                   flux_plugin_arg_t *args, void *arg)
{
    struct perilog *ctx = arg;
    flux_t *h = flux_jobtap_get_flux (p);
    flux_jobid_t id;
    uint32_t userid;
    flux_job_state_t state;
    json_t *R;
    struct past past = { 0 };

    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:I s:i s:i s:o}",
                                "id", &id,
                                "userid", &userid,
                                "state", &state,
                                "R", &R) < 0
        || !(state & FLUX_JOB_STATE_RUNNING))
        return 0;
    subscribe (ctx);
    if (read_past (h, id, &past) < 0) {
        flux_log_error (h, "%s: eventlog", idf58 (id));
        return -1;
    }
    if (past.epilog_start && !past.epilog_finish
        && (!ctx->epilog.command || run_start (ctx, false, id, userid, R) < 0))
        (void)flux_jobtap_epilog_finish (p, id, EPILOG_TEXT, 1);
    if (past.prolog_finish)
        return 0;
    if (state == FLUX_JOB_STATE_CLEANUP) {
        if (past.prolog_start && past.epilog_start)
            (void)flux_jobtap_prolog_finish (p, id, PROLOG_TEXT, 1);
        else if (past.prolog_start)
            run_end_prolog (ctx, id, userid, R, 1);
    }
    else if (!ctx->prolog.command) {
        if (past.prolog_start)
            (void)flux_jobtap_prolog_finish (p, id, PROLOG_TEXT, 0);
    }
    /* Killed before it began, unless the job is on its way to run. */
    else if ((past.prolog_start
              || (flux_jobtap_job_event_posted (p, id, "start") == 0
                  && flux_jobtap_prolog_start (p, PROLOG_TEXT) == 0))
             && run_start (ctx, true, id, userid, R) < 0)
        run_end_prolog (ctx, id, userid, R, 1);
    return 0;
}

static int exception_cb (flux_plugin_t *p, const char *topic,
                         flux_plugin_arg_t *args, void *arg)
{
    static const char *const names[] = { PROLOG, EPILOG };
    flux_jobid_t id;
    int severity;

    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:I s:{s:{s:i}}}",
                                "id", &id,
                                "entry",
                                  "context",
                                    "severity", &severity) < 0
        || severity > 0)
        return 0;
    for (int i = 0; i < 2; i++) {
        struct run *run = flux_jobtap_job_aux_get (p, id, names[i]);
        if (run)
            run_cancel (run);
    }
    return 0;
}

static int parse_table (json_t *conf, const char *name, struct table *table,
                        flux_error_t *errp)
{
    json_t *o = jp_get (conf, name);
    json_t *timeout = NULL;
    json_t *arg;
    size_t index;
    json_error_t error;

    if (!o)
        return 0;
    table->kill_timeout = 60.;
    if (json_unpack_ex (o,
                        &error,
                        0,
                        "{s:o s?b s?b s?F s?o}",
                        "command", &table->command,
                        "per-rank", &table->per_rank,
                        "cancel-on-exception", &table->cancel_on_exception,
                        "kill-timeout", &table->kill_timeout,
                        "timeout", &timeout) < 0) {
        table->command = NULL;
        return set_error (errp, "[%s]: %s", name, error.text);
    }
    json_incref (table->command);
    if (timeout && json_duration (timeout, &table->timeout) < 0)
        return set_error (errp, "[%s]: invalid timeout", name);
    if (isinf (table->timeout)) // "infinity"
        table->timeout = 0.;
    if (json_array_size (table->command) == 0)
        return set_error (errp, "[%s]: invalid command", name);
    json_array_foreach (table->command, index, arg) {
        if (!json_is_string (arg))
            return set_error (errp, "[%s]: invalid command", name);
    }
    return 0;
}

/* Take a new configuration, or leave the old one in place.
 */
static int configure (struct perilog *ctx, json_t *conf, flux_error_t *errp)
{
    struct table prolog = { .cancel_on_exception = 1, .timeout = 1800. };
    struct table epilog = { 0 };

    if (parse_table (conf, "job-manager.prolog", &prolog, errp) < 0
        || parse_table (conf, "job-manager.epilog", &epilog, errp) < 0) {
        json_decref (prolog.command);
        json_decref (epilog.command);
        return -1;
    }
    json_decref (ctx->prolog.command);
    json_decref (ctx->epilog.command);
    ctx->prolog = prolog;
    ctx->epilog = epilog;
    return 0;
}

static int conf_update_cb (flux_plugin_t *p, const char *topic,
                           flux_plugin_arg_t *args, void *arg)
{
    json_t *conf;
    flux_error_t error;

    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:o}",
                                "conf", &conf) < 0)
        return flux_jobtap_error (p, args, "perilog: no configuration");
    if (configure (arg, conf, &error) < 0)
        return flux_jobtap_error (p, args, "perilog: %s", error.text);
    return 0;
}

static void perilog_destroy (void *arg)
{
    struct perilog *ctx = arg;

    json_decref (ctx->prolog.command);
    json_decref (ctx->epilog.command);
    free (ctx);
}

static const struct flux_plugin_handler tab[] = {
    { "job.new", new_cb, NULL },
    { "job.state.run", state_run_cb, NULL },
    { "job.event.finish", finish_cb, NULL },
    { "job.event.exception", exception_cb, NULL },
    { "conf.update", conf_update_cb, NULL },
    { 0 },
};

int flux_plugin_init (flux_plugin_t *p)
{
    struct perilog *ctx;

    if (flux_plugin_set_name (p, "perilog") < 0
        || !(ctx = calloc (1, sizeof (*ctx))))
        return -1;
    ctx->p = p;
    if (flux_plugin_aux_set (p, "perilog", ctx, perilog_destroy) < 0) {
        perilog_destroy (ctx);
        return -1;
    }
    for (const struct flux_plugin_handler *t = tab; t->topic; t++) {
        if (flux_plugin_add_handler (p, t->topic, t->cb, ctx) < 0)
            return -1;
    }
    return 0;
}

// vi: ts=4 sw=4 expandtab

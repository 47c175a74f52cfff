/* SPDX-License-Identifier: LGPL-3.0-only */
/* perilog.c - jobtap plugin perilog.so: runs the commands of
 * [job-manager.prolog] and [job-manager.epilog].
 *
 * With per-rank = true a command runs once for each node of the job, otherwise
 * once.  All made-up nodes being this host, HOSTNAME says which node a process
 * stands for.  A job that had a prolog gets the epilog too, whether or not it
 * ran.  Loaded as in flux-core, by the [job-manager] plugins configuration.
 */
#include <stdlib.h>
#include <flux/jobtap.h>

#include "jobutil.h"
#include "perilog.h"

/* Callbacks
 */

static int state_run_cb (flux_plugin_t *p, const char *topic,
                         flux_plugin_arg_t *args, void *arg)
{
    struct perilog *ctx = arg;
    flux_jobid_t id;
    uint32_t userid;
    json_t *R;

    /* Without a subscription there is no job.event.* callback. */
    if ((ctx->prolog.command || ctx->epilog.command)
        && flux_jobtap_job_subscribe (p, FLUX_JOBTAP_CURRENT_JOB) < 0)
        flux_log_error (flux_jobtap_get_flux (p), "subscribe to job events");
    if (!ctx->prolog.command)
        return 0;
    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:I s:i s:o}",
                                "id", &id,
                                "userid", &userid,
                                "R", &R) < 0
        || flux_jobtap_prolog_start (p, "job-manager.prolog") < 0) {
        flux_log_error (flux_jobtap_get_flux (p), "prolog-start");
        return -1;
    }
    if (run_start (ctx, true, id, userid, R) < 0) {
        (void)flux_jobtap_raise_exception (p, id, "prolog", 0,
                                           "could not start prolog");
        (void)flux_jobtap_prolog_finish (p, id, "job-manager.prolog", 1);
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
        || flux_jobtap_epilog_start (p, "job-manager.epilog") < 0) {
        flux_log_error (flux_jobtap_get_flux (p), "epilog-start");
        return -1;
    }
    if (run_start (ctx, false, id, userid, R) < 0)
        (void)flux_jobtap_epilog_finish (p, id, "job-manager.epilog", 1);
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

static int parse_duration (json_t *o, double *dp)
{
    const char *s = json_string_value (o);
    char *end;

    if (json_is_number (o)) {
        *dp = json_number_value (o);
        return *dp < 0. ? -1 : 0;
    }
    *dp = 0.;
    if (!o || (s && streq (s, "infinity")))
        return o ? 0 : -1;
    *dp = s ? strtod (s, &end) : -1.;
    if (!s || end == s || *dp < 0.)
        return -1;
    if (streq (end, "ms"))
        *dp /= 1000.;
    else if (streq (end, "m"))
        *dp *= 60.;
    else if (streq (end, "h"))
        *dp *= 3600.;
    else if (streq (end, "d"))
        *dp *= 86400.;
    else
        return *end && !streq (end, "s") ? -1 : 0;
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
    if (timeout && parse_duration (timeout, &table->timeout) < 0)
        return set_error (errp, "[%s]: invalid timeout", name);
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

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See conf.h. The job manager gives a plugin its table "conf" of [job-manager] plugins
 * at the start of Flux only, and the whole configuration with each conf.update, also
 * before it tells a plugin that is loaded of any job.
 */

#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "libdws/directive/presets.h"
#include "libutil/safelog.h"

#include "conf.h"
#include "limits.h"

static int check_presets (json_t *presets, json_t *variables,
                          dws_error_t *error)
{
    dws_error_t e;

    if (presets && !json_is_object (presets))
        return dws_error (error, EINVAL, "presets must be a table");
    if (variables && !json_is_object (variables))
        return dws_error (error, EINVAL, "preset_variables must be a table");
    if (dws_presets_check_variables (variables, &e) < 0)
        return dws_error (error, EINVAL, "preset_variables.%s", e.text);
    if (dws_presets_check (presets, variables, &e) < 0)
        return dws_error (error, EINVAL, "presets.%s", e.text);
    return 0;
}

/* What the key 'name' of [rabbit] allows, within bounds.
 */
static int read_limit (json_t *rabbit,
                       const char *name,
                       int fallback,
                       int max,
                       int *limit,
                       dws_error_t *error)
{
    json_t *value = json_object_get (rabbit, name);
    json_int_t n = value ? json_integer_value (value) : fallback;

    if ((value && !json_is_integer (value)) || n < 1 || n > max)
        return dws_error (error, EINVAL, "%s must be an integer from 1 to %d",
                          name, max);
    *limit = n;
    return 0;
}

static int read_limits (json_t *rabbit,
                        struct dws_directive_limits *limits,
                        dws_error_t *error)
{
    if (read_limit (rabbit, "max_directive_bytes",
                    dws_directive_limits_default.bytes,
                    dws_directive_limits_max.bytes, &limits->bytes, error) < 0)
        return -1;
    return read_limit (rabbit, "max_directives",
                       dws_directive_limits_default.count,
                       dws_directive_limits_max.count, &limits->count, error);
}

static const char *base_name (const char *path)
{
    const char *slash = path ? strrchr (path, '/') : NULL;

    return slash ? slash + 1 : path;
}

/* The table "conf" of the last entry that loads this plugin, or NULL.
 */
static json_t *find_own (struct jobtap *ctx, json_t *plugins)
{
    const char *name = base_name (flux_plugin_get_path (ctx->p));
    json_t *found = NULL;
    json_t *entry;
    size_t index;

    json_array_foreach (plugins, index, entry) {
        const char *load = json_string_value (json_object_get (entry, "load"));

        if (name && load && !strcmp (base_name (load), name))
            found = json_object_get (entry, "conf");
    }
    return found;
}

static int read_own (json_t *own, double *timeout, dws_error_t *error)
{
    json_error_t e;

    *timeout = 0.;
    if (own
        && json_unpack_ex (own, &e, 0, "{s?F !}", "epilog-timeout", timeout) < 0)
        return dws_error (error, EINVAL, "%s", e.text);
    return 0;
}

/* Only the start of Flux gives a plugin the options of the configuration: those are
 * followed. Others are of the load command, and stay.
 */
int jobtap_conf_init (struct jobtap *ctx)
{
    const flux_conf_t *conf = flux_get_conf (ctx->h);
    dws_error_t error = { "" };
    json_t *plugins = NULL;
    json_t *given = NULL;

    ctx->configured = true;
    if (!flux_plugin_get_conf (ctx->p))
        return 0;
    if (flux_plugin_conf_unpack (ctx->p, "o", &given) < 0
        || read_own (given, &ctx->epilog_timeout, &error) < 0) {
        safe_log (ctx->h, LOG_ERR, "dws: plugin configuration: %s",
                  given ? error.text : flux_plugin_strerror (ctx->p));
        return -1;
    }
    if (conf)
        (void)flux_conf_unpack (conf, NULL, "{s?{s?o}}",
                                "job-manager", "plugins", &plugins);
    ctx->configured = json_equal (given, find_own (ctx, plugins));
    return 0;
}

int jobtap_conf_update_cb (flux_plugin_t *p,
                           const char *topic,
                           flux_plugin_arg_t *args,
                           void *arg)
{
    struct jobtap *ctx = arg;
    json_t *conf;
    json_t *rabbit;
    json_t *plugins;
    json_t *presets;
    json_t *variables;
    json_t *allow;
    struct dws_directive_limits limits;
    struct dws_limits *storage_limits;
    double lifetime;
    double timeout;
    dws_error_t error;

    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:o}",
                                "conf", &conf) < 0)
        return flux_jobtap_error (p, args, "the configuration is malformed");
    rabbit = json_object_get (conf, "rabbit");
    plugins = json_object_get (json_object_get (conf, "job-manager"), "plugins");
    if (rabbit && !json_is_object (rabbit))
        return flux_jobtap_error (p, args, "[rabbit] must be a table");
    if (read_own (find_own (ctx, plugins), &timeout, &error) < 0)
        return flux_jobtap_error (p, args, "job-manager.plugins: dws-jobtap: %s",
                                  error.text);
    presets = json_object_get (rabbit, "presets");
    variables = json_object_get (rabbit, "preset_variables");
    if (check_presets (presets, variables, &error) < 0)
        return flux_jobtap_error (p, args, "rabbit.%s", error.text);
    if (read_limits (rabbit, &limits, &error) < 0)
        return flux_jobtap_error (p, args, "rabbit.%s", error.text);
    allow = json_object_get (rabbit, "allow_rabbit_resources");
    if (allow && !json_is_boolean (allow))
        return flux_jobtap_error (p, args, "rabbit.allow_rabbit_resources must"
                                  " be true or false");
    if (jobtap_limits_read_lifetime (rabbit, &lifetime, &error) < 0)
        return flux_jobtap_error (p, args, "rabbit.%s", error.text);
    if (!(storage_limits = dws_limits_create (json_object_get (rabbit,
                                                               "limits"),
                                              &error)))
        return flux_jobtap_error (p, args, "%s", error.text);
    dws_limits_destroy (ctx->storage_limits);
    ctx->storage_limits = storage_limits;
    ctx->rabbit_resources = json_is_true (allow);
    ctx->limits = limits;
    ctx->persistent_lifetime = lifetime;
    json_decref (ctx->presets);
    ctx->presets = json_incref (presets);
    json_decref (ctx->preset_variables);
    ctx->preset_variables = json_incref (variables);
    if (ctx->configured)
        jobtap_set_timeout (ctx, timeout);
    return 0;
}

// vi: ts=4 sw=4 expandtab

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See conf.h. The job manager gives a plugin its table "conf" of [job-manager] plugins
 * at the start of Flux only, and the whole configuration with each conf.update, also
 * before it tells a plugin that is loaded of any job.
 */

#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "libutil/safelog.h"

#include "conf.h"

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

/* Options that equal those of the configuration come from the start of Flux, and follow
 * the configuration. Other options come from the load command, and stay.
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
    struct dws_config *config;
    json_t *conf;
    json_t *plugins;
    double timeout;
    dws_error_t error;

    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:o}",
                                "conf", &conf) < 0)
        return flux_jobtap_error (p, args, "the configuration is malformed");
    plugins = json_object_get (json_object_get (conf, "job-manager"), "plugins");
    if (read_own (find_own (ctx, plugins), &timeout, &error) < 0)
        return flux_jobtap_error (p, args, "job-manager.plugins: dws-jobtap: %s",
                                  error.text);
    if (!(config = dws_config_plugin (json_object_get (conf, "rabbit"), &error)))
        return flux_jobtap_error (p, args, "%s", error.text);
    dws_config_destroy (ctx->config);
    ctx->config = config;
    if (ctx->configured)
        jobtap_set_timeout (ctx, timeout);
    return 0;
}

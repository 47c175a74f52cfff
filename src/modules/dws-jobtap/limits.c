/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See limits.h.
 */

#include <errno.h>

#include "libdws/config/limits.h"
#include "libdws/directive/command.h"
#include "libdws/storage/sizes.h"
#include "limits.h"

static int check (struct jobtap *ctx,
                  uint32_t userid,
                  json_t *place,
                  json_t *resources,
                  const struct dws_directives *dirs,
                  dws_error_t *error)
{
    struct dws_subject subject = { .userid = userid, .bank_open = true };
    struct dws_applying applying;
    struct dws_sizes sizes;

    (void)json_unpack (place,
                       "{s?s s?s}",
                       "bank", &subject.bank,
                       "queue", &subject.queue);
    dws_sizes_read (resources, dirs, NULL, NULL, &sizes);
    (void)dws_limits_find (ctx->config->storage_limits, &subject, &applying);
    return dws_limits_check (ctx->config->storage_limits, &applying, &sizes,
                             error);
}

/* Is there anything but the destruction of storage?
 */
static bool has_storage (const struct dws_directives *dirs)
{
    return (dws_commands (dirs) & ~DWS_COMMAND_DESTROY_PERSISTENT) != 0;
}

/* The bank and the queue before the update.
 */
static json_t *place_before (struct jobtap_job *job)
{
    flux_plugin_arg_t *args = flux_jobtap_job_lookup (job->ctx->p, job->id);
    json_t *place = args ? jobtap_args_place (args) : NULL;

    flux_plugin_arg_destroy (args);
    return place;
}

int jobtap_limits_validate (struct jobtap *ctx,
                            flux_plugin_arg_t *args,
                            struct jobtap_job *job,
                            const struct dws_directives *dirs,
                            dws_error_t *error)
{
    json_t *before;
    json_t *resources;
    json_t *place;
    json_int_t userid;
    int rc = 0;

    if (!dws_limits_any (ctx->config->storage_limits))
        return 0;
    before = job ? place_before (job) : NULL;
    if (!(place = jobtap_args_place (args)))
        rc = dws_error_nomem (error);
    else if (!json_equal (before, place) && has_storage (dirs)) {
        if (flux_plugin_arg_unpack (args,
                                    FLUX_PLUGIN_ARG_IN,
                                    "{s:I s:{s:o}}",
                                    "userid", &userid,
                                    "jobspec",
                                    "resources", &resources) < 0)
            rc = dws_error (error, EPROTO, "resources: malformed");
        else
            rc = check (ctx, userid, place, resources, dirs, error);
    }
    json_decref (place);
    json_decref (before);
    return rc;
}

int jobtap_limits_lifetime (const struct jobtap *ctx,
                            const struct dws_directives *dirs,
                            dws_error_t *error)
{
    for (size_t i = 0; i < dws_directives_count (dirs); i++) {
        double lifetime = dws_command_lifetime (dirs, i);

        if (ctx->config->persistent_lifetime > 0.
            && lifetime > ctx->config->persistent_lifetime)
            return dws_error (error, EPERM, "#DW directive %zu: "
                              DWS_LIFETIME_KEY " '%.60s' is more than the %g d "
                              "that the site allows (rabbit.persistent_lifetime)",
                              i + 1,
                              dws_directives_arg (dirs, i, DWS_LIFETIME_KEY),
                              ctx->config->persistent_lifetime / 86400.);
    }
    return 0;
}

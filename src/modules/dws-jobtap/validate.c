/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See validate.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>
#include <flux/hostlist.h>

#include "libdws/directive/command.h"
#include "libdws/directive/directive.h"
#include "libdws/directive/presets.h"
#include "libdws/storage/data_first.h"
#include "libdws/storage/ownrabbit.h"
#include "libdws/storage/resources.h"
#include "libdws/util/bounds.h"
#include "libdws/util/fields.h"
#include "libdws/util/lists.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "conf.h"
#include "job.h"
#include "limits.h"
#include "user.h"
#include "validate.h"

/* The job that is updated, or NULL: it is being submitted.
 */
static struct jobtap_job *current_job (void *arg)
{
    struct jobtap_job *job = jobtap_job_lookup (arg, FLUX_JOBTAP_CURRENT_JOB);

    return job && job->accepted ? job : NULL;
}

/* Check where the job's nodes are to be, without the mapping: a rabbit may be unknown.
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

/* Do directives name a capacity? Such storage is allocated with the nodes, whatever its
 * profile adds.
 */
static bool has_size (const struct dws_directives *dirs)
{
    for (size_t i = 0; i < dws_directives_count (dirs); i++) {
        if (dws_directives_arg (dirs, i, "capacity"))
            return true;
    }
    return false;
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

/* Resources and constraints go to the dws service and to the scheduler, so they are
 * bounded. With 'ours' (a job that is updated) they include what the service has added.
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

int jobtap_validate_cb (flux_plugin_t *p,
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
    bool sized = false;
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
        sized = has_size (dirs);
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
        || check_bounds (args, current_job (ctx) != NULL, &error) < 0
        || (sized && !current_job (ctx)
            && dws_resources_check (resources, &error) < 0))
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

/* Validate the jobspec as if the sender submitted it now. Fails with EINVAL and the text
 * with which the job would be rejected.
 */
static int validate (struct jobtap *ctx, const flux_msg_t *msg,
                     dws_error_t *error)
{
    static const struct dws_field fields[] = {
        DWS_REQUIRED ("jobspec", OBJECT),
        { 0 },
    };
    flux_plugin_arg_t *args;
    const char *text = "the job is refused";
    json_t *payload = NULL;
    uint32_t userid;
    int rc = -1;

    if (flux_msg_get_userid (msg, &userid) < 0
        || (flux_msg_has_payload (msg)
            && flux_msg_unpack (msg, "o", &payload) < 0))
        return dws_error (error, errno, "malformed request");
    if (dws_fields_check (payload, fields, error) < 0)
        return -1;
    if (!(args = flux_plugin_arg_create ())
        || flux_plugin_arg_pack (args,
                                 FLUX_PLUGIN_ARG_IN,
                                 "{s:I s:I s:O}",
                                 "id", (json_int_t)0,   // presets may ask for it
                                 "userid", (json_int_t)userid,
                                 "jobspec",
                                 json_object_get (payload, "jobspec")) < 0)
        dws_error_nomem (error);
    else if (jobtap_validate_cb (ctx->p, "job.validate", args, ctx) == 0)
        rc = 0;
    else {
        (void)flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_OUT, "{s:s}",
                                      "errmsg", &text);
        dws_error (error, EINVAL, "%s", text);
    }
    ERRNO_SAFE (flux_plugin_arg_destroy (args));
    return rc;
}

static void request_cb (flux_t *h,
                        flux_msg_handler_t *mh,
                        const flux_msg_t *msg,
                        void *arg)
{
    dws_error_t error = { "" };
    int rc;

    if (validate (arg, msg, &error) == 0)
        rc = flux_respond (h, msg, NULL);
    else
        rc = flux_respond_error (h, msg, errno, error.text);
    if (rc < 0)
        safe_log_error (h, "dws: respond");
}

int jobtap_validate_register (struct jobtap *ctx)
{
    return flux_jobtap_service_register_ex (ctx->p, "validate", FLUX_ROLE_USER,
                                            request_cb, ctx);
}

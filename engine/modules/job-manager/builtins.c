/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The plugins that are always loaded, in this order.
 */
#include "manager.h"

/* Without other advice a job's priority is its urgency. */
static int priority_cb (flux_plugin_t *p, const char *topic,
                        flux_plugin_arg_t *args, void *arg)
{
    int urgency;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:i}", "urgency", &urgency) < 0)
        return -1;
    return flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_OUT,
                                 "{s:i}", "priority", urgency);
}

static int priority_default_init (flux_plugin_t *p)
{
    if (flux_plugin_add_handler (p, "job.state.priority",
                                 priority_cb, NULL) < 0
        || flux_plugin_add_handler (p, "job.priority.get",
                                    priority_cb, NULL) < 0)
        return -1;
    return 0;
}

/* A time limit can be changed by the job's user within the rules, which
 * job.validate checks.  The owner is above them, unless the plugin was loaded
 * with owner-allow-any=0, and alone may change that of a running job.
 */
static int duration_cb (flux_plugin_t *p, const char *topic,
                        flux_plugin_arg_t *args, void *arg)
{
    flux_job_state_t state;
    int rolemask;
    double duration;
    int allow_any = 1;
    bool owner;

    (void)flux_plugin_conf_unpack (p, "{s:i}", "owner-allow-any", &allow_any);
    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:F s:i s:{s:i}}",
                                "value", &duration,
                                "state", &state,
                                "cred",
                                  "rolemask", &rolemask) < 0)
        return flux_jobtap_error (p, args, "malformed arguments");
    owner = (rolemask & FLUX_ROLE_OWNER) && allow_any;
    if (duration < 0.)
        return flux_jobtap_error (p, args, "duration must not be negative");
    if ((state & FLUX_JOB_STATE_RUNNING) && !owner)
        return flux_jobtap_error (p, args, "of a running job, the owner of the "
                                  "instance alone changes the duration");
    if (owner)
        return flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_OUT,
                                     "{s:i}", "validated", 1);
    return 0;
}

static int update_duration_init (flux_plugin_t *p)
{
    return flux_plugin_add_handler (p,
                                    "job.update.attributes.system.duration",
                                    duration_cb, NULL);
}

const struct builtin jobtap_builtins[] = {
    { ".priority-default", priority_default_init },
    { ".limit-job-size", limit_job_size_plugin_init },
    { ".limit-duration", limit_duration_plugin_init },
    { ".update-duration", update_duration_init },
    { NULL, NULL },
};

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * A jobtap plugin of a site, for tests: every job has a prolog, "site-prolog", and an
 * epilog, "site-epilog". Its options say on which event each of them begins:
 *
 *   prolog=run, or the name of a prolog event of another plugin
 *   epilog=finish, or the name of an epilog event of another plugin
 *   raise=EVENT   raise a fatal exception then
 *   update=1      write the job's resources into its jobspec once more, in DEPEND
 *   brief=1       end each of them at once
 *
 * "run" and "finish" come before or after those of a plugin that was loaded before.
 * Unless "brief", an action ends with the request job-manager.site.end {"id", "what"}.
 */
#include <errno.h>
#include <string.h>
#include <jansson.h>
#include <flux/core.h>
#include <flux/jobtap.h>

struct options {
    const char *prolog;
    const char *epilog;
    const char *raise;
    int update;
    int brief;
};

static void options_get (flux_plugin_t *p, struct options *options)
{
    *options = (struct options){ "", "", "", 0, 0 };
    (void)flux_plugin_conf_unpack (p, "{s?s s?s s?s s?i s?i}",
                                   "prolog", &options->prolog,
                                   "epilog", &options->epilog,
                                   "raise", &options->raise,
                                   "update", &options->update,
                                   "brief", &options->brief);
}

static int new_cb (flux_plugin_t *p, const char *topic,
                   flux_plugin_arg_t *args, void *arg)
{
    return flux_jobtap_job_subscribe (p, FLUX_JOBTAP_CURRENT_JOB);
}

static int depend_cb (flux_plugin_t *p, const char *topic,
                      flux_plugin_arg_t *args, void *arg)
{
    struct options options;
    json_t *resources;

    options_get (p, &options);
    if (!options.update)
        return 0;
    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:{s:o}}",
                                "jobspec", "resources", &resources) < 0)
        return -1;
    return flux_jobtap_jobspec_update_pack (p, "{s:O}", "resources", resources);
}

static int begin_prolog (flux_plugin_t *p, const struct options *options)
{
    if (flux_jobtap_prolog_start (p, "site-prolog") < 0)
        return -1;
    return options->brief
        ? flux_jobtap_prolog_finish (p, FLUX_JOBTAP_CURRENT_JOB, "site-prolog", 0)
        : 0;
}

static int begin_epilog (flux_plugin_t *p, const struct options *options)
{
    if (flux_jobtap_epilog_start (p, "site-epilog") < 0)
        return -1;
    return options->brief
        ? flux_jobtap_epilog_finish (p, FLUX_JOBTAP_CURRENT_JOB, "site-epilog", 0)
        : 0;
}

static int run_cb (flux_plugin_t *p, const char *topic,
                   flux_plugin_arg_t *args, void *arg)
{
    struct options options;

    options_get (p, &options);
    if (strcmp (options.prolog, "run") != 0)
        return 0;
    return begin_prolog (p, &options);
}

static int event_cb (flux_plugin_t *p, const char *topic,
                     flux_plugin_arg_t *args, void *arg)
{
    const char *name = topic + strlen ("job.event.");
    const char *description = "";
    struct options options;

    options_get (p, &options);
    (void)flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:{s?{s?s}}}",
                                  "entry", "context",
                                  "description", &description);
    if (!strncmp (description, "site-", strlen ("site-")))
        return 0;
    if (!strcmp (name, options.raise)
        && flux_jobtap_raise_exception (p, FLUX_JOBTAP_CURRENT_JOB, "site", 0,
                                        "not well") < 0)
        return -1;
    if (!strcmp (name, options.prolog))
        return begin_prolog (p, &options);
    if (!strcmp (name, options.epilog))
        return begin_epilog (p, &options);
    return 0;
}

static void end_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                    void *arg)
{
    flux_plugin_t *p = arg;
    flux_jobid_t id;
    const char *what;
    int rc;

    if ((rc = flux_msg_unpack (msg, "{s:I s:s}", "id", &id, "what", &what)) == 0)
        rc = !strcmp (what, "prolog")
            ? flux_jobtap_prolog_finish (p, id, "site-prolog", 0)
            : flux_jobtap_epilog_finish (p, id, "site-epilog", 0);
    if (rc < 0)
        (void)flux_respond_error (h, msg, errno, NULL);
    else
        (void)flux_respond (h, msg, NULL);
}

int flux_plugin_init (flux_plugin_t *p)
{
    const struct flux_plugin_handler tab[] = {
        { "job.new", new_cb, NULL },
        { "job.state.depend", depend_cb, NULL },
        { "job.state.run", run_cb, NULL },
        { "job.event.*", event_cb, NULL },
        { 0 },
    };

    if (flux_plugin_register (p, "site", tab) < 0)
        return -1;
    return flux_jobtap_service_register (p, "end", end_cb, p);
}

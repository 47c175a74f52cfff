/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * A jobtap plugin for tests, which logs every callback about jobs to the file
 * that its configuration names as "log", and does in a callback what the job
 * asks for by attributes.user.probe:
 *
 *   reject, reject-default, fail   in job.validate
 *   dependency, update, update-post, raise, warn, post, annotate, misuse
 *                                  in job.state.depend
 *   priority                       in job.state.priority
 *   perilog                        in job.state.run and job.state.cleanup
 *
 * An update of "deny" is refused, one of "more" brings another with it.
 *
 * Service job-manager.probe.call {"id", "call"} does things from outside.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include <flux/core.h>
#include <flux/jobtap.h>

struct probe {
    FILE *log;
    int depth; // of callbacks within callbacks
};

static const char *err (int rc)
{
    return rc >= 0 ? "ok"
         : errno == EINVAL ? "EINVAL"
         : errno == ENOENT ? "ENOENT"
         : errno == EROFS ? "EROFS" : "error";
}

static void aux_free (void *arg)
{
    struct probe *probe = arg;

    fprintf (probe->log, "%*saux freed\n", probe->depth * 2, "");
}

static void say (struct probe *probe, const char *what, const char *result)
{
    fprintf (probe->log, "%*s%s: %s\n", (probe->depth + 1) * 2, "", what,
             result);
}

static int on_depend (flux_plugin_t *p, struct probe *probe,
                      const char *mode, flux_jobid_t id,
                      flux_plugin_arg_t *args)
{
    if (strcmp (mode, "dependency") == 0) {
        say (probe, "add", err (flux_jobtap_dependency_add (p, id, "one")));
        say (probe, "add again",
             err (flux_jobtap_dependency_add (p, id, "one")));
        say (probe, "remove",
             err (flux_jobtap_dependency_remove (p, id, "one")));
    }
    if (strcmp (mode, "update") == 0) {
        say (probe, "update", err (flux_jobtap_jobspec_update_pack (p,
                 "{s:s}", "attributes.system.foo", "bar")));
        say (probe, "update by id",
             err (flux_jobtap_jobspec_update_id_pack (p, id,
                 "{s:s}", "attributes.system.foo", "bar")));
        say (probe, "update of version",
             err (flux_jobtap_jobspec_update_pack (p,
                 "{s:i}", "version", 2)));
    }
    if (strcmp (mode, "update-post") == 0) { // to the job attributes.user.other
        flux_jobid_t other = 0;

        (void)flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                      "{s:{s:{s:{s:I}}}}",
                                      "jobspec",
                                        "attributes",
                                          "user",
                                            "other", &other);
        say (probe, "update", err (flux_jobtap_jobspec_update_pack (p,
                 "{s:s}", "attributes.system.foo", "bar")));
        say (probe, "post", err (flux_jobtap_event_post_pack (p, other, "foo",
                                                              NULL)));
    }
    if (strcmp (mode, "raise") == 0)
        say (probe, "raise",
             err (flux_jobtap_raise_exception (p, id, "probe", 0, "a %s",
                                               "note")));
    if (strcmp (mode, "warn") == 0)
        say (probe, "raise",
             err (flux_jobtap_raise_exception (p, FLUX_JOBTAP_CURRENT_JOB,
                                               "probe", 3, "careful")));
    if (strcmp (mode, "post") == 0)
        say (probe, "post",
             err (flux_jobtap_event_post_pack (p, id, "foo", "{s:i}",
                                               "a", 1)));
    if (strcmp (mode, "annotate") == 0)
        return flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_OUT, "{s:{s:s}}",
                                     "annotations", "probe", "hello");
    if (strcmp (mode, "misuse") == 0) {
        say (probe, "epilog", err (flux_jobtap_epilog_start (p, "x")));
        say (probe, "aux of nobody",
             err (flux_jobtap_job_aux_set (p, 1, "x", probe, NULL)));
    }
    return 0;
}

static int on_perilog (flux_plugin_t *p, struct probe *probe,
                       flux_jobid_t id, flux_job_state_t state)
{
    if (state == FLUX_JOB_STATE_RUN) {
        say (probe, "prolog", err (flux_jobtap_prolog_start (p, "pro")));
        say (probe, "prolog over",
             err (flux_jobtap_prolog_finish (p, id, "pro", 0)));
    }
    else {
        say (probe, "prolog", err (flux_jobtap_prolog_start (p, "pro")));
        say (probe, "epilog", err (flux_jobtap_epilog_start (p, "epi")));
        say (probe, "epilog over",
             err (flux_jobtap_epilog_finish (p, id, "epi", 0)));
    }
    return 0;
}

static int act (flux_plugin_t *p, struct probe *probe, const char *topic,
                const char *mode, flux_jobid_t id, flux_job_state_t state,
                flux_plugin_arg_t *args)
{
    if (strcmp (topic, "job.new") == 0) {
        say (probe, "subscribe", err (flux_jobtap_job_subscribe (p, id)));
        say (probe, "aux", err (flux_jobtap_job_aux_set (p, id, "probe",
                                                         probe, aux_free)));
    }
    if (strcmp (topic, "job.update.attributes.system.deny") == 0)
        return flux_jobtap_error (p, args, "not %s", "that");
    if (strcmp (topic, "job.update.attributes.system.more") == 0)
        return flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_OUT,
                                     "{s:i s:{s:i}}",
                                     "validated", 1,
                                     "updates",
                                       "attributes.system.extra", 5);
    if (strcmp (topic, "job.validate") == 0) {
        if (strcmp (mode, "reject") == 0)
            return flux_jobtap_reject_job (p, args, "no, %s", "thanks");
        if (strcmp (mode, "reject-default") == 0)
            return flux_jobtap_reject_job (p, args, NULL);
        if (strcmp (mode, "fail") == 0)
            return -1;
    }
    if (strcmp (topic, "job.state.depend") == 0)
        return on_depend (p, probe, mode, id, args);
    if (strcmp (topic, "job.state.priority") == 0) {
        if (strcmp (mode, "priority") == 0)
            return flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_OUT, "{s:i}",
                                         "priority", 42);
    }
    if (strcmp (mode, "perilog") == 0
        && (strcmp (topic, "job.state.run") == 0
            || strcmp (topic, "job.state.cleanup") == 0))
        return on_perilog (p, probe, id, state);
    if (strcmp (topic, "job.state.inactive") == 0)
        say (probe, "late event",
             err (flux_jobtap_event_post_pack (p, id, "late", NULL)));
    return 0;
}

static int callback (flux_plugin_t *p, const char *topic,
                     flux_plugin_arg_t *args, void *arg)
{
    struct probe *probe = arg;
    flux_jobid_t id;
    flux_job_state_t state;
    flux_job_state_t prev = 0;
    json_int_t priority;
    json_t *R = NULL;
    json_t *end = NULL;
    const char *mode = "";
    int rc;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:I s:i s?i s:I s?o s?o s:{s:{s?{s?s}}}}",
                                "id", &id,
                                "state", &state,
                                "prev_state", &prev,
                                "priority", &priority,
                                "R", &R,
                                "end_event", &end,
                                "jobspec",
                                  "attributes",
                                    "user",
                                      "probe", &mode) < 0) {
        fprintf (probe->log, "%s: %s\n", topic,
                 flux_plugin_arg_strerror (args));
        return -1;
    }
    fprintf (probe->log, "%*s%s %s%s%s priority=%lld%s%s\n",
             probe->depth * 2, "", topic,
             prev ? flux_job_statetostr (prev, "S") : "",
             prev ? ">" : "", flux_job_statetostr (state, "S"),
             (long long)priority, R ? " R" : "", end ? " end" : "");
    probe->depth++;
    rc = act (p, probe, topic, mode, id, state, args);
    probe->depth--;
    return rc;
}

static int query (flux_plugin_t *p, const char *topic,
                  flux_plugin_arg_t *args, void *arg)
{
    return flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_OUT,
                                 "{s:s}", "probe", "here");
}

static int conf_update (flux_plugin_t *p, const char *topic,
                        flux_plugin_arg_t *args, void *arg)
{
    const char *s = NULL;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:{s?{s?s}}}",
                                "conf", "probe", "say", &s) < 0)
        return flux_jobtap_error (p, args, "probe.say must be a string");
    return 0;
}

static void call_cb (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    flux_plugin_t *p = arg;
    flux_jobid_t id;
    const char *call;
    int rc = -1;

    errno = EPROTO;
    if (flux_request_unpack (msg, NULL, "{s:I s:s}",
                             "id", &id,
                             "call", &call) < 0)
        rc = -1;
    else if (strcmp (call, "update") == 0)
        rc = flux_jobtap_jobspec_update_id_pack (p, id, "{s:s}",
                                                 "attributes.system.foo",
                                                 "baz");
    else if (strcmp (call, "prolog") == 0)
        rc = flux_jobtap_prolog_start (p, "outside");
    if (rc < 0)
        (void)flux_respond_error (h, msg, errno, NULL);
    else
        (void)flux_respond (h, msg, NULL);
}

static void probe_free (void *arg)
{
    struct probe *probe = arg;

    fclose (probe->log);
    free (probe);
}

int flux_plugin_init (flux_plugin_t *p)
{
    struct probe *probe;
    const char *path;

    if (flux_plugin_conf_unpack (p, "{s:s}", "log", &path) < 0
        || !(probe = calloc (1, sizeof (*probe))))
        return -1;
    if (!(probe->log = fopen (path, "a"))) {
        free (probe);
        return -1;
    }
    setvbuf (probe->log, NULL, _IOLBF, 0);
    if (flux_plugin_aux_set (p, NULL, probe, probe_free) < 0) {
        probe_free (probe);
        return -1;
    }
    if (flux_plugin_set_name (p, "probe") < 0
        || flux_jobtap_service_register (p, "call", call_cb, p) < 0
        || flux_plugin_add_handler (p, "plugin.query", query, NULL) < 0
        || flux_plugin_add_handler (p, "conf.update", conf_update, NULL) < 0
        || flux_plugin_add_handler (p, "job.*", callback, probe) < 0)
        return -1;
    return 0;
}

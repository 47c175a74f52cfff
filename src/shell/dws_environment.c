/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws_environment.so: put the variables that say where a rabbit job's file
 * systems are mounted ($DW_JOB_name) into the environment of its tasks. They
 * come in the dws_environment event, which is posted before the job may
 * start.
 */

#define FLUX_SHELL_PLUGIN_NAME "dws_environment"

#include <errno.h>
#include <string.h>
#include <jansson.h>
#include <flux/core.h>
#include <flux/shell.h>

static int set_variables (flux_shell_t *shell, json_t *entry)
{
    json_t *variables;
    json_t *value;
    const char *name;

    if (json_unpack (entry,
                     "{s:{s:o}}",
                     "context",
                     "variables", &variables) < 0
        || !json_is_object (variables)) {
        shell_log_error ("dws_environment event without variables");
        return -1;
    }
    json_object_foreach (variables, name, value) {
        if (!json_is_string (value)) {
            shell_log_error ("variable %s is not a string", name);
            return -1;
        }
        if (flux_shell_setenvf (shell,
                                1,
                                name,
                                "%s",
                                json_string_value (value)) < 0) {
            shell_log_errno ("setting %s", name);
            return -1;
        }
    }
    return 0;
}

/* Return 1 when the watch is over, 0 to go on, -1 on error.
 */
static int handle_entry (flux_shell_t *shell, const char *s)
{
    json_t *entry;
    const char *name;
    int rc = 0;

    if (!(entry = json_loads (s, 0, NULL))
        || json_unpack (entry, "{s:s}", "name", &name) < 0) {
        shell_log_error ("malformed event in the job's eventlog");
        rc = -1;
    }
    else if (!strcmp (name, "dws_environment"))
        rc = set_variables (shell, entry) < 0 ? -1 : 1;
    else if (!strcmp (name, "start")) {
        /* The event would have come before this one. That is as it should be
         * if dw held no directive at all.
         */
        shell_debug ("no dws_environment event");
        rc = 1;
    }
    json_decref (entry);
    return rc;
}

static int watch_eventlog (flux_shell_t *shell, flux_future_t *f)
{
    const char *s;
    int rc;

    while (flux_job_event_watch_get (f, &s) == 0) {
        if ((rc = handle_entry (shell, s)) != 0)
            return rc < 0 ? -1 : 0;
        flux_future_reset (f);
    }
    if (errno == ENODATA)
        shell_log_error ("the job's eventlog ended early");
    else
        shell_log_error ("watching the job's eventlog: %s",
                         flux_future_error_string (f));
    return -1;
}

static int init_cb (flux_plugin_t *p,
                    const char *topic,
                    flux_plugin_arg_t *args,
                    void *arg)
{
    flux_shell_t *shell = flux_plugin_get_shell (p);
    flux_future_t *f;
    flux_t *h;
    json_int_t id;
    json_t *dw = NULL;
    int rc;

    if (!shell
        || flux_shell_info_unpack (shell,
                                   "{s:I s:{s:{s?{s?o}}}}",
                                   "jobid", &id,
                                   "jobspec",
                                   "attributes",
                                   "system",
                                   "dw", &dw) < 0) {
        shell_log_error ("could not read the jobspec");
        return -1;
    }
    if (!dw)
        return 0;
    if (!(h = flux_shell_get_flux (shell))) {
        /* A standalone shell has no eventlog. */
        shell_debug ("no Flux instance");
        return 0;
    }
    if (!(f = flux_job_event_watch (h, id, "eventlog", 0))) {
        shell_log_errno ("watching the job's eventlog");
        return -1;
    }
    rc = watch_eventlog (shell, f);
    if (flux_job_event_watch_cancel (f) < 0)
        shell_log_errno ("cancelling the watch of the eventlog");
    flux_future_destroy (f);
    return rc;
}

__attribute__ ((visibility ("default")))
int flux_plugin_init (flux_plugin_t *p)
{
    if (flux_plugin_set_name (p, FLUX_SHELL_PLUGIN_NAME) < 0
        || flux_plugin_add_handler (p, "shell.init", init_cb, NULL) < 0)
        return -1;
    return 0;
}

// vi: ts=4 sw=4 expandtab

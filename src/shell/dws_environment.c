/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws_environment.so: put the variables that say where a rabbit job's file
 * systems are mounted ($DW_JOB_name) into the environment of its tasks. The
 * variables come in the dws_environment event, which is posted before the job
 * may start; $DW_WORKFLOW_TOKEN, if there is one, in answer to a request.
 */

#define FLUX_SHELL_PLUGIN_NAME "dws_environment"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>
#include <flux/core.h>
#include <flux/shell.h>

#include "libdws/util/clean.h"
#include "libutil/names.h"

static const char *future_text (flux_future_t *f, int errnum)
{
    return f && flux_future_has_error (f) ? flux_future_error_string (f)
                                          : strerror (errnum);
}

/* The module waits with its answer while Kubernetes can not be reached. A job
 * that has no token for so long can not do what it was made for.
 */
#define TOKEN_TIMEOUT 60.

/* The events are written before the job's shells are started: a second without
 * any means that some were missed. Then rank 0 is asked for them, less and less
 * often (s).
 */
#define WATCH_MIN 1.
#define WATCH_MAX 30.

/* The token is a secret of the job's owner: it is given in answer to a request,
 * whose sender is known, and is not in the eventlog.
 */
static int set_token (flux_shell_t *shell, json_int_t id)
{
    flux_t *h = flux_shell_get_flux (shell);
    flux_future_t *f;
    const char *token;
    int rc = -1;

    if (!(f = flux_rpc_pack (h, DWS_TOPIC_TOKEN, FLUX_NODEID_ANY, 0,
                             "{s:I}", "jobid", id))
        || flux_future_wait_for (f, TOKEN_TIMEOUT) < 0
        || flux_rpc_get_unpack (f, "{s:s}", "token", &token) < 0)
        shell_log_error ("DW_WORKFLOW_TOKEN: %s",
                         errno == ETIMEDOUT
                         ? "no answer from the dws module"
                         : future_text (f, errno));
    else if (flux_shell_setenvf (shell, 1, "DW_WORKFLOW_TOKEN", "%s",
                                 token) < 0)
        shell_log_errno ("setting DW_WORKFLOW_TOKEN");
    else
        rc = 0;
    flux_future_destroy (f);
    return rc;
}

static int set_variables (flux_shell_t *shell, json_int_t id, json_t *entry)
{
    json_t *variables;
    json_t *value;
    const char *name;
    char shown[128];
    int token = 0;

    if (json_unpack (entry,
                     "{s:{s:o s?b}}",
                     "context",
                     "variables", &variables,
                     "token", &token) < 0
        || !json_is_object (variables)) {
        shell_log_error ("dws_environment event without variables");
        return -1;
    }
    json_object_foreach (variables, name, value) {
        if (!json_is_string (value)) {
            shell_log_error ("variable %s is not a string",
                             dws_clean (name, shown, sizeof (shown)));
            return -1;
        }
        if (flux_shell_setenvf (shell,
                                1,
                                name,
                                "%s",
                                json_string_value (value)) < 0) {
            shell_log_errno ("setting %s",
                             dws_clean (name, shown, sizeof (shown)));
            return -1;
        }
    }
    return token ? set_token (shell, id) : 0;
}

/* Return 1 when the watch is over, 0 to go on, -1 on error.
 */
static int handle_entry (flux_shell_t *shell, json_int_t id, const char *s)
{
    json_t *entry;
    const char *name;
    int rc = 0;

    if (!(entry = json_loads (s, 0, NULL))
        || json_unpack (entry, "{s:s}", "name", &name) < 0) {
        shell_log_error ("malformed event in the job's eventlog");
        rc = -1;
    }
    else if (!strcmp (name, DWS_ENVIRONMENT))
        rc = set_variables (shell, id, entry) < 0 ? -1 : 1;
    else if (!strcmp (name, "start")) {
        /* A dws_environment event would have come before the start event. */
        shell_log_error ("the job asks for rabbit storage (dw) and was started"
                         " without: dws-jobtap.so was not loaded");
        rc = -1;
    }
    json_decref (entry);
    return rc;
}

/* Handle the events of one watch. Returns as handle_entry() does; 0 means that
 * none came for 'timeout' seconds.
 */
static int handle_events (flux_shell_t *shell, json_int_t id, flux_future_t *f,
                          double timeout)
{
    const char *s;
    int rc;

    while (flux_future_wait_for (f, timeout) == 0
           && flux_job_event_watch_get (f, &s) == 0) {
        if ((rc = handle_entry (shell, id, s)) != 0)
            return rc;
        flux_future_reset (f);
    }
    if (errno == ETIMEDOUT)
        return 0;
    if (errno == ENODATA)
        shell_log_error ("the job's eventlog ended early");
    else
        shell_log_error ("watching the job's eventlog: %s",
                         flux_future_error_string (f));
    return -1;
}

/* Handle the events that there are, as handle_events() does.
 */
static int handle_eventlog (flux_shell_t *shell, json_int_t id, const char *s)
{
    int rc = 0;
    char *copy;
    char *saveptr;

    if (!(copy = strdup (s))) {
        shell_log_errno ("reading the job's eventlog");
        return -1;
    }
    for (char *line = strtok_r (copy, "\n", &saveptr);
         line && rc == 0;
         line = strtok_r (NULL, "\n", &saveptr))
        rc = handle_entry (shell, id, line);
    free (copy);
    return rc;
}

/* Ask the job-info module of a rank for the events. Returns as handle_events() does.
 */
static int look_up (flux_shell_t *shell, json_int_t id, uint32_t rank, double timeout)
{
    flux_t *h = flux_shell_get_flux (shell);
    flux_future_t *f;
    const char *eventlog;
    int rc = 0;

    if (!(f = flux_rpc_pack (h, "job-info.lookup", rank, 0, "{s:I s:[s] s:i}",
                             "id", id,
                             "keys", "eventlog",
                             "flags", 0))
        || flux_future_wait_for (f, timeout) < 0
        || flux_rpc_get_unpack (f, "{s:s}", "eventlog", &eventlog) < 0)
        shell_warn ("asking %s for the job's eventlog: %s",
                    rank == 0 ? "rank 0" : "the broker", future_text (f, errno));
    else
        rc = handle_eventlog (shell, id, eventlog);
    flux_future_destroy (f);
    return rc;
}

/* The event is in the eventlog before the shell is started, so look it up first: a watch
 * has each event read and sent by itself. The KVS of a rank may be a moment behind, and
 * may miss a change (flux-core 0.88, one job of some hundreds): until the next change,
 * maybe hours later, look-ups and watches on that rank see the old eventlog.
 */
static int find_variables (flux_shell_t *shell, json_int_t id)
{
    flux_t *h = flux_shell_get_flux (shell);
    double timeout = WATCH_MIN;
    flux_future_t *f;
    int rc = look_up (shell, id, FLUX_NODEID_ANY, timeout);

    while (rc == 0) {
        if (!(f = flux_job_event_watch (h, id, "eventlog", 0))) {
            shell_log_errno ("watching the job's eventlog");
            return -1;
        }
        rc = handle_events (shell, id, f, timeout);
        if (flux_job_event_watch_cancel (f) < 0)
            shell_log_errno ("cancelling the watch of the eventlog");
        flux_future_destroy (f);
        if (rc == 0)
            rc = look_up (shell, id, 0, timeout);
        timeout = timeout < WATCH_MAX / 2. ? timeout * 2. : WATCH_MAX;
    }
    return rc < 0 ? -1 : 0;
}

/* Whether 'dw' is without text: such a job is an ordinary one.
 */
static bool is_blank (json_t *dw)
{
    json_t *entry;
    size_t i;

    if (json_is_string (dw)) {
        const char *s = json_string_value (dw);

        return s[strspn (s, " \t\n\v\f\r")] == '\0';
    }
    if (!json_is_array (dw))
        return json_is_null (dw);
    json_array_foreach (dw, i, entry) {
        if (json_is_array (entry) || !is_blank (entry))
            return false;
    }
    return true;
}

static int init_cb (flux_plugin_t *p,
                    const char *topic,
                    flux_plugin_arg_t *args,
                    void *arg)
{
    flux_shell_t *shell = flux_plugin_get_shell (p);
    json_int_t id;
    json_t *dw = NULL;

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
    if (!dw || is_blank (dw))
        return 0;
    if (!flux_shell_get_flux (shell)) {
        /* A standalone shell has no eventlog. */
        shell_debug ("no Flux instance");
        return 0;
    }
    return find_variables (shell, id);
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

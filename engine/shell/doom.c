/* SPDX-License-Identifier: LGPL-3.0-only */
/* doom.c - the first task that ends starts a timer: if the rest of the job
 * goes on too long without it, an exception ends the job.  The options
 * exit-timeout and exit-on-error say when.  It is noted as a shell.task-exit
 * event.
 */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "shell.h"

struct doom {
    flux_shell_t *shell;
    double timeout;             // <0: none
    bool exit_on_error;
    bool posted;                // event posted, or the leader told
    int rank;                   // of the first task
    int status;                 // its wait status
    flux_watcher_t *timer;
};

/* The node that runs a task.
 */
static const char *task_host (flux_shell_t *shell, int rank)
{
    int i = shell->size - 1;

    while (i > 0 && shell->nodes[i].first_task > rank)
        i--;
    return shell->nodes[i].host;
}

static void raise_doom (struct doom *doom, const char *why)
{
    flux_shell_raise_exit_status (doom->status,
                                  "%s: rank %d on host %s %s (%s %d)",
                                  basename ((char *)json_string_value (
                                      json_array_get (doom->shell->command,
                                                      0))),
                                  doom->rank,
                                  task_host (doom->shell, doom->rank),
                                  why,
                                  WIFSIGNALED (doom->status) ? "signal"
                                                             : "rc",
                                  WIFSIGNALED (doom->status)
                                      ? WTERMSIG (doom->status)
                                      : WEXITSTATUS (doom->status));
}

static void timeout_cb (flux_reactor_t *r, flux_watcher_t *w,
                        int revents, void *arg)
{
    raise_doom (arg, "exited and exit-timeout has expired");
}

/* On the leader: the first exit anywhere in the job.
 */
static void post (struct doom *doom, json_t *info)
{
    if (doom->posted
        || json_unpack (info,
                        "{s:i s:i}",
                        "rank", &doom->rank,
                        "wait_status", &doom->status) < 0)
        return;
    doom->posted = true;
    if (flux_shell_add_event_context (doom->shell,
                                      "shell.task-exit",
                                      0,
                                      "O",
                                      info) == 0)
        (void)shell_exec_event (doom->shell, "shell.task-exit");
    if (doom->exit_on_error && doom->status != 0)
        raise_doom (doom, "failed and exit-on-error is set");
    else if (doom->timeout >= 0.) {
        flux_timer_watcher_reset (doom->timer, doom->timeout, 0.);
        flux_watcher_start (doom->timer);
        flux_watcher_unref (doom->timer); // it does not keep the shell
    }
}

static void task_exit_cb (flux_t *h, flux_msg_handler_t *mh,
                          const flux_msg_t *msg, void *arg)
{
    json_t *info;

    if (flux_request_unpack (msg, NULL, "o", &info) < 0)
        shell_log_errno ("task-exit request");
    else
        post (arg, info);
}

void shell_doom_task_exit (struct shell_task *task)
{
    struct doom *doom = task->shell->doom;
    flux_future_t *f;
    char *s;
    json_t *info;

    if (doom->posted || flux_shell_task_get_info (task, &s) < 0)
        return;
    if ((info = json_loads (s, 0, NULL))) {
        if (task->shell->rank == 0)
            post (doom, info);
        else if ((f = flux_shell_rpc_pack (task->shell,
                                           "task-exit",
                                           0,
                                           FLUX_RPC_NORESPONSE,
                                           "O",
                                           info))) {
            doom->posted = true;
            flux_future_destroy (f);
        }
        json_decref (info);
    }
    free (s);
}

static int parse_timeout (const char *s, double *dp)
{
    char *end;

    if (streq (s, "none")) {
        *dp = -1.;
        return 0;
    }
    *dp = strtod (s, &end);
    if (streq (end, "m"))
        *dp *= 60.;
    else if (streq (end, "h"))
        *dp *= 3600.;
    else if (end[0] && !streq (end, "s"))
        return -1;
    return end != s && *dp >= 0. ? 0 : -1;
}

int shell_doom_init (flux_shell_t *shell)
{
    struct doom *doom;
    json_t *o;

    if (!(doom = calloc (1, sizeof (*doom))))
        return -1;
    shell->doom = doom;
    doom->shell = shell;
    doom->timeout = 30.;
    o = json_object_get (shell->options, "exit-on-error");
    doom->exit_on_error = json_is_true (o) || json_integer_value (o) > 0;
    if ((o = json_object_get (shell->options, "exit-timeout"))) {
        if (json_is_number (o))
            doom->timeout = json_number_value (o);
        else if (!json_is_string (o)
                 || parse_timeout (json_string_value (o), &doom->timeout) < 0)
            return shell_log_errn (EINVAL, "invalid exit-timeout");
    }
    if (shell->rank > 0)
        return 0;
    if (!(doom->timer = flux_timer_watcher_create (shell->r,
                                                   0.,
                                                   0.,
                                                   timeout_cb,
                                                   doom)))
        return -1;
    if (shell->size > 1)
        return flux_shell_service_register (shell,
                                            "task-exit",
                                            task_exit_cb,
                                            doom);
    return 0;
}

void shell_doom_fini (flux_shell_t *shell)
{
    if (shell->doom) {
        flux_watcher_destroy (shell->doom->timer);
        free (shell->doom);
        shell->doom = NULL;
    }
}

// vi: ts=4 sw=4 expandtab

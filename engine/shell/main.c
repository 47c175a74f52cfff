/* SPDX-License-Identifier: LGPL-3.0-only */
/* main.c - flux-shell, the job shell: runs the tasks of one node of a job.
 *
 * Usage: flux-shell JOBID RANK
 *
 * RANK is the rank in R of the node to play.  The shells of a job meet in two
 * barriers: when all are initialized, and when all tasks run.
 */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "shell.h"

/* Connect, and send both requests before waiting for either. */
static int connect_flux (flux_shell_t *shell, unsigned int broker_rank)
{
    flux_future_t *subscribed = NULL;
    flux_future_t *lookup = NULL;
    char topic[64];
    char id[32];
    int rc = -1;

    snprintf (topic, sizeof (topic), "shell-%ju.", (uintmax_t)shell->id);
    if (!(shell->h = flux_open (NULL, 0))
        || !(shell->r = flux_reactor_create (0))
        || flux_set_reactor (shell->h, shell->r) < 0
        || flux_job_id_encode (shell->id, "f58plain", id, sizeof (id)) < 0
        || !(subscribed = flux_event_subscribe_ex (shell->h, topic, 0))
        || !(lookup = flux_rpc_pack (shell->h, "job-info.lookup",
                                     FLUX_NODEID_ANY, 0, "{s:I s:[ss] s:i}",
                                     "id", shell->id,
                                     "keys", "J", "R",
                                     "flags", 0))
        || flux_future_get (subscribed, NULL) < 0)
        shell_log_errno ("connecting to Flux");
    else {
        snprintf (shell->service, sizeof (shell->service), "%ju-shell-%s",
                  (uintmax_t)getuid (), id);
        rc = shell_info_init (shell, lookup, broker_rank);
    }
    flux_future_destroy (subscribed);
    flux_future_destroy (lookup);
    return rc;
}

static int set_environment (flux_shell_t *shell)
{
    const char *path = flux_attr_get (shell->h, "jobid-path");
    const char *id = idf58 (shell->id);
    const char *names[] = { "FLUX_URI", "FLUX_KVS_NAMESPACE" };

    for (int i = 0; i < 2; i++) {
        const char *value = getenv (names[i]);
        if (value && flux_shell_setenvf (shell, 1, names[i], "%s", value) < 0)
            return -1;
    }
    (void)json_object_del (shell->env, "FLUX_PROXY_REMOTE");
    return flux_shell_setenvf (shell, 1, "FLUX_JOB_ID", "%s", id)
           || flux_shell_setenvf (shell, 1, "FLUX_JOB_ID_PATH", "%s/%s",
                                  path && !streq (path, "/") ? path : "", id)
           || flux_shell_setenvf (shell, 1, "FLUX_JOB_SIZE", "%d",
                                  shell->ntasks)
           || flux_shell_setenvf (shell, 1, "FLUX_JOB_NNODES", "%d",
                                  shell->size)
           // Made-up nodes share a host, and differ in this.
           || flux_shell_setenvf (shell, 1, "HOSTNAME", "%s",
                                  shell->nodes[shell->rank].host) ? -1 : 0;
}

static void change_directory (flux_shell_t *shell)
{
    const char *cwd = json_string_value (jp_get (shell->jobspec,
                                                 "attributes.system.cwd"));

    if (cwd && chdir (cwd) < 0) {
        shell_log_errno ("host %s: Could not change dir to %s, using /tmp",
                         shell->nodes[shell->rank].host, cwd);
        if (chdir ("/tmp") < 0)
            shell_die_errno (1, "/tmp");
    }
}

static void barrier (flux_shell_t *shell)
{
    flux_future_t *f;
    int rank = shell->nodes[shell->rank].broker_rank;

    if (shell->size == 1)
        return;
    if (!(f = flux_rpc_pack (shell->h, "job-exec.shell-barrier",
                             FLUX_NODEID_ANY, 0, "{s:I s:i}",
                             "id", shell->id, "rank", rank)))
        shell_die_errno (1, "shell_barrier");
    if (flux_future_get (f, NULL) < 0) {
        if (errno != EIO) // with EIO an exception has told why
            shell_log_error ("shell_barrier: %s", flux_future_error_string (f));
        exit (1);
    }
    flux_future_destroy (f);
}

/* Signals */

static void kill_cb (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    int sig;

    if (flux_event_unpack (msg, NULL, "{s:i}", "signum", &sig) < 0)
        shell_log_errno ("malformed kill event");
    else
        shell_killall (arg, sig);
}

static void signal_cb (flux_reactor_t *r, flux_watcher_t *w,
                       int revents, void *arg)
{
    shell_killall (arg, flux_signal_watcher_get_signum (w));
}

/* Watchers and handlers live as long as the handle. */
static int forward_signals (flux_shell_t *shell)
{
    const int signals[] = { SIGINT, SIGTERM, SIGALRM };
    struct flux_match match = FLUX_MATCH_EVENT;
    flux_msg_handler_t *mh;
    char topic[64];

    for (int i = 0; i < 3; i++) {
        flux_watcher_t *w = flux_signal_watcher_create (shell->r, signals[i],
                                                        signal_cb, shell);
        if (!w
            || flux_aux_set (shell->h, NULL, w,
                             (flux_free_f)flux_watcher_destroy) < 0)
            return -1;
        flux_watcher_start (w);
    }
    snprintf (topic, sizeof (topic), "shell-%ju.kill", (uintmax_t)shell->id);
    match.topic_glob = topic;
    if (!(mh = flux_msg_handler_create (shell->h, match, kill_cb, shell)))
        return -1;
    flux_msg_handler_start (mh);
    return flux_aux_set (shell->h, NULL, mh,
                         (flux_free_f)flux_msg_handler_destroy);
}

/* Tasks */

static void completion_cb (flux_subprocess_t *p)
{
    struct task *task = flux_subprocess_aux_get (p, "task");

    if ((task->rc = flux_subprocess_exit_code (p)) < 0)
        task->rc = 128 + flux_subprocess_signaled (p);
    task->completed = true;
    if (--task->shell->running == 0)
        flux_reactor_stop (task->shell->r);
}

static void output_cb (flux_subprocess_t *p, const char *stream)
{
    shell_io_task_output (flux_subprocess_aux_get (p, "task"), stream);
}

/* In the new process: a task does not outlive its shell. */
static void exec_cb (flux_subprocess_t *p, void *arg)
{
    (void)prctl (PR_SET_PDEATHSIG, SIGKILL);
}

static flux_cmd_t *task_command (flux_shell_t *shell, int index, int rank)
{
    flux_cmd_t *cmd = flux_cmd_create (0, NULL, NULL);
    const char *name;
    json_t *value;
    size_t i;

    if (!cmd)
        return NULL;
    json_array_foreach (shell->command, i, value) {
        if (flux_cmd_argv_append (cmd, json_string_value (value)) < 0)
            goto error;
    }
    json_object_foreach (shell->env, name, value) {
        const char *s = json_string_value (value);
        if (s && flux_cmd_setenvf (cmd, 1, name, "%s", s) < 0)
            goto error;
    }
    if (flux_cmd_setenvf (cmd, 1, "FLUX_TASK_LOCAL_ID", "%d", index) == 0
        && flux_cmd_setenvf (cmd, 1, "FLUX_TASK_RANK", "%d", rank) == 0)
        return cmd;
error:
    flux_cmd_destroy (cmd);
    return NULL;
}

static void task_start (flux_shell_t *shell, int index)
{
    static const flux_subprocess_ops_t ops = {
        .on_completion = completion_cb,
        .on_stdout = output_cb,
        .on_stderr = output_cb,
    };
    const flux_subprocess_hooks_t hooks = { .pre_exec = exec_cb };
    struct task *task = &shell->tasks[index];
    int flags = 0;
    flux_cmd_t *cmd;

    task->shell = shell;
    task->rank = shell->nodes[shell->rank].first_task + index;
    if (json_integer_value (json_object_get (shell->options, "nosetpgrp")))
        flags |= FLUX_SUBPROCESS_FLAGS_NO_SETPGRP;
    if (!(cmd = task_command (shell, index, task->rank)))
        shell_die_errno (1, "task %d", task->rank);
    if (!(task->proc = flux_local_exec_ex (shell->r, flags, cmd, &ops, &hooks,
                                           NULL, NULL)))
        shell_die (errno == EPERM || errno == EACCES ? 126
                   : errno == ENOENT ? 127 : 1,
                   "task %d (host %s): start failed: %s: %s", task->rank,
                   shell->nodes[shell->rank].host, flux_cmd_arg (cmd, 0),
                   strerror (errno));
    flux_cmd_destroy (cmd);
    if (flux_subprocess_aux_set (task->proc, "task", task, NULL) < 0)
        shell_die_errno (1, "task %d", task->rank);
    shell->running++;
}

static void post_event (flux_shell_t *shell, const char *name, json_t *context)
{
    if (shell->rank > 0)
        json_decref (context);
    else if (!context || shell_exec_event (shell, name, context) < 0)
        shell_die_errno (1, "failed to emit event %s", name);
}

static void shell_init (flux_shell_t *shell, unsigned int broker_rank)
{
    if (connect_flux (shell, broker_rank) < 0)
        shell_die (1, "cannot find out about the job");
    if (shell_io_init (shell) < 0 || forward_signals (shell) < 0)
        shell_die_errno (1, "shell initialization");
    change_directory (shell);
    if (shell_plugins_load (shell) < 0)
        shell_die (1, "failed to load plugins");
    if (set_environment (shell) < 0)
        shell_die_errno (1, "cannot set the environment of the job");
    if (shell_plugins_call (shell, "shell.init") < 0)
        shell_die (1, "shell.init callback(s) failed");
    shell->ntasks_local = shell->nodes[shell->rank].ntasks;
    if (!(shell->tasks = calloc (shell->ntasks_local + 1,
                                 sizeof (shell->tasks[0]))))
        shell_die_errno (1, "tasks");
}

static int shell_run (flux_shell_t *shell)
{
    int rc = 0;

    barrier (shell);
    post_event (shell, "shell.init",
                json_pack ("{s:s s:i s:i}",
                           "service", shell->service,
                           "leader-rank", (int)shell->nodes[0].broker_rank,
                           "size", shell->size));
    for (int i = 0; i < shell->ntasks_local; i++)
        task_start (shell, i);
    if (shell_io_start (shell) < 0)
        shell_die_errno (1, "standard input");
    barrier (shell);
    post_event (shell, "shell.start", shell_taskmap (shell));
    if (shell->running > 0 && flux_reactor_run (shell->r, 0) < 0)
        shell_log_errno ("flux_reactor_run");
    for (int i = 0; i < shell->ntasks_local; i++) {
        if (shell->tasks[i].rc > rc)
            rc = shell->tasks[i].rc;
        flux_subprocess_destroy (shell->tasks[i].proc);
    }
    return rc;
}

int main (int argc, char *argv[])
{
    flux_shell_t *shell = &the_shell;
    unsigned long rank;
    char *end;
    int rc;

    setlocale (LC_ALL, "");
    signal (SIGPIPE, SIG_IGN);
    (void)prctl (PR_SET_PDEATHSIG, SIGKILL);    // the shell ends with job-exec
    if (argc != 3
        || flux_job_id_parse (argv[1], &shell->id) < 0
        || (rank = strtoul (argv[2], &end, 10), end == argv[2] || *end)) {
        fprintf (stderr, "Usage: flux-shell JOBID RANK\n");
        return 1;
    }
    shell_init (shell, rank);
    rc = shell_run (shell);
    free (shell->tasks);
    shell_io_fini (shell);
    shell_plugins_unload (shell);
    shell_info_fini (shell);
    flux_close (shell->h);
    flux_reactor_destroy (shell->r);
    return rc;
}

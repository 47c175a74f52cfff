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
#include <sys/resource.h>
#include <unistd.h>

#include "common/va.h"
#include "shell.h"

/* Send the requests of which the shell needs the answers, all at once, and
 * then wait for each.
 */
static int connect_flux (flux_shell_t *shell, unsigned int broker_rank)
{
    flux_future_t *f;
    char topic[64];
    char id[32];
    const char *s;
    int rc = -1;

    if (!(shell->h = flux_open (NULL, 0))
        || !(shell->r = flux_reactor_create (0))
        || flux_set_reactor (shell->h, shell->r) < 0)
        return shell_log_errno ("connecting to Flux");
    snprintf (topic, sizeof (topic), "shell-%ju.", (uintmax_t)shell->id);
    if (!(f = flux_event_subscribe_ex (shell->h, topic, 0)))
        return -1;
    if ((shell->lookup = flux_rpc_pack (shell->h,
                                        "job-info.lookup",
                                        FLUX_NODEID_ANY,
                                        0,
                                        "{s:I s:[ss] s:i}",
                                        "id", shell->id,
                                        "keys", "J", "R",
                                        "flags", 0))
        && flux_future_get (f, NULL) == 0)
        rc = 0;
    flux_future_destroy (f);
    if (rc < 0)
        return shell_log_errno ("subscribing to shell events");
    if ((s = flux_attr_get (shell->h, "security.owner")))
        shell->owner = strtoul (s, NULL, 10);
    if (flux_job_id_encode (shell->id, "f58plain", id, sizeof (id)) < 0)
        return -1;
    snprintf (shell->service,
              sizeof (shell->service),
              "%ju-shell-%s",
              (uintmax_t)getuid (),
              id);
    return shell_info_init (shell, broker_rank);
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
    (void)flux_shell_unsetenv (shell, "FLUX_PROXY_REMOTE");
    return flux_shell_setenvf (shell, 1, "FLUX_JOB_ID", "%s", id)
           || flux_shell_setenvf (shell,
                                  1,
                                  "FLUX_JOB_ID_PATH",
                                  "%s/%s",
                                  path && !streq (path, "/") ? path : "",
                                  id)
           || flux_shell_setenvf (shell,
                                  1,
                                  "FLUX_JOB_SIZE",
                                  "%d",
                                  shell->ntasks)
           || flux_shell_setenvf (shell,
                                  1,
                                  "FLUX_JOB_NNODES",
                                  "%d",
                                  shell->size)
           // Made-up nodes share a host: this is what tells them apart.
           || flux_shell_setenvf (shell,
                                  1,
                                  "HOSTNAME",
                                  "%s",
                                  shell->nodes[shell->rank].host) ? -1 : 0;
}

/* Limits of the submitter, as far as the hard limits here allow.
 */
static void set_limits (flux_shell_t *shell)
{
    static const struct { const char *name; int resource; } limits[] = {
        { "cpu", RLIMIT_CPU }, { "fsize", RLIMIT_FSIZE },
        { "data", RLIMIT_DATA }, { "stack", RLIMIT_STACK },
        { "core", RLIMIT_CORE }, { "nofile", RLIMIT_NOFILE },
        { "as", RLIMIT_AS }, { "rss", RLIMIT_RSS },
        { "nproc", RLIMIT_NPROC }, { "memlock", RLIMIT_MEMLOCK },
    };
    json_t *conf = json_object_get (shell->options, "rlimit");

    for (size_t i = 0; i < sizeof (limits) / sizeof (limits[0]); i++) {
        json_t *o = json_object_get (conf, limits[i].name);
        struct rlimit rl;

        if (!json_is_integer (o) || getrlimit (limits[i].resource, &rl) < 0)
            continue;
        rl.rlim_cur = json_integer_value (o);
        if (rl.rlim_cur > rl.rlim_max)
            rl.rlim_cur = rl.rlim_max;
        if (setrlimit (limits[i].resource, &rl) < 0)
            shell_log_errno ("setrlimit %s", limits[i].name);
    }
}

static void change_directory (flux_shell_t *shell)
{
    if (shell->cwd && chdir (shell->cwd) < 0) {
        shell_log_error ("host %s: Could not change dir to %s: %s. "
                         "Going to /tmp instead",
                         shell->nodes[shell->rank].host,
                         shell->cwd,
                         strerror (errno));
        if (chdir ("/tmp") < 0)
            shell_die_errno (1, "Could not change dir to /tmp");
    }
}

static void barrier (flux_shell_t *shell)
{
    flux_future_t *f;

    if (shell->size == 1)
        return;
    if (!(f = flux_rpc_pack (shell->h,
                             "job-exec.shell-barrier",
                             FLUX_NODEID_ANY,
                             0,
                             "{s:I s:i}",
                             "id", shell->id,
                             "rank",
                               (int)shell->nodes[shell->rank].broker_rank)))
        shell_die_errno (1, "shell_barrier");
    /* After EIO there is an exception already that says why. */
    if (flux_future_get (f, NULL) < 0) {
        if (errno != EIO)
            shell_log_error ("shell_barrier: %s", flux_future_error_string (f));
        flux_future_destroy (f);
        exit (1);
    }
    flux_future_destroy (f);
}

static void call_plugins (flux_shell_t *shell, const char *topic)
{
    if (flux_shell_plugstack_call (shell, topic, NULL) < 0)
        shell_die (1, "%s callback(s) failed", topic);
}

/* Completion references: the reactor runs until there is none.
 */

int flux_shell_add_completion_ref (flux_shell_t *shell, const char *fmt, ...)
{
    char name[256];
    int n;

    if (!shell || !fmt) {
        errno = EINVAL;
        return -1;
    }
    VA_DO (fmt, vsnprintf (name, sizeof (name), fmt, ap));
    n = json_integer_value (json_object_get (shell->refs, name)) + 1;
    if (json_object_set_new (shell->refs, name, json_integer (n)) < 0) {
        errno = ENOMEM;
        return -1;
    }
    return n;
}

int flux_shell_remove_completion_ref (flux_shell_t *shell, const char *fmt, ...)
{
    char name[256];
    int n;

    if (!shell || !fmt) {
        errno = EINVAL;
        return -1;
    }
    VA_DO (fmt, vsnprintf (name, sizeof (name), fmt, ap));
    n = json_integer_value (json_object_get (shell->refs, name)) - 1;
    if (n < 0) {
        errno = ENOENT;
        return -1;
    }
    if (n > 0)
        return json_object_set_new (shell->refs, name, json_integer (n));
    (void)json_object_del (shell->refs, name);
    if (json_object_size (shell->refs) == 0)
        flux_reactor_stop (shell->r);
    return 0;
}

/* Signals
 */

void flux_shell_killall (flux_shell_t *shell, int sig)
{
    for (int i = 0; shell && sig > 0 && i < shell->ntasks_local; i++) {
        flux_subprocess_t *p = shell->tasks[i].proc;
        if (p && flux_subprocess_state (p) == FLUX_SUBPROCESS_RUNNING)
            flux_future_destroy (flux_subprocess_kill (p, sig));
    }
}

static void kill_cb (flux_t *h, flux_msg_handler_t *mh,
                     const flux_msg_t *msg, void *arg)
{
    int sig;

    if (flux_event_unpack (msg, NULL, "{s:i}", "signum", &sig) < 0)
        shell_log_errno ("malformed kill event");
    else
        flux_shell_killall (arg, sig);
}

static void signal_cb (flux_reactor_t *r, flux_watcher_t *w,
                       int revents, void *arg)
{
    flux_shell_killall (arg, flux_signal_watcher_get_signum (w));
}

static int forward_signals (flux_shell_t *shell)
{
    const int signals[] = { SIGINT, SIGTERM, SIGALRM };

    for (int i = 0; i < 3; i++) {
        flux_watcher_t *w = flux_signal_watcher_create (shell->r,
                                                        signals[i],
                                                        signal_cb,
                                                        shell);
        if (!w
            || flux_aux_set (shell->h,
                             NULL,
                             w,
                             (flux_free_f)flux_watcher_destroy) < 0)
            return -1;
        flux_watcher_start (w);
    }
    return flux_shell_add_event_handler (shell, "kill", kill_cb, shell);
}

/* Tasks
 */

static void task_completion_cb (flux_subprocess_t *p)
{
    struct shell_task *task = flux_subprocess_aux_get (p, "task");
    flux_shell_t *shell = task->shell;

    if ((task->rc = flux_subprocess_exit_code (p)) < 0)
        task->rc = 128 + flux_subprocess_signaled (p);
    task->completed = true;
    shell->running--;
    shell->current = task;
    if (flux_shell_plugstack_call (shell, "task.exit", NULL) < 0)
        shell_log_error ("task.exit: a plugin has failed");
    shell_doom_task_exit (task);
    shell->current = NULL;
    if (shell->running == 0
        && flux_shell_plugstack_call (shell, "shell.finish", NULL) < 0)
        shell_log_error ("shell.finish plugin(s) failed");
    (void)flux_shell_remove_completion_ref (shell, "task%d", task->rank);
}

static void task_output_cb (flux_subprocess_t *p, const char *stream)
{
    shell_io_task_output (flux_subprocess_aux_get (p, "task"), stream);
}

/* In the new process.
 */
static void task_exec_cb (flux_subprocess_t *p, void *arg)
{
    struct shell_task *task = arg;

    // A task does not outlive its shell.
    (void)prctl (PR_SET_PDEATHSIG, SIGKILL);
    task->in_exec = true;
    if (flux_shell_plugstack_call (task->shell, "task.exec", NULL) < 0)
        fprintf (stderr, "flux-shell: task.exec: a plugin has failed\n");
}

static int task_init (flux_shell_t *shell, int index)
{
    struct shell_task *task = &shell->tasks[index];
    const char *name;
    json_t *value;
    size_t i;

    task->shell = shell;
    task->index = index;
    task->rank = shell->nodes[shell->rank].first_task + index;
    if (!(task->cmd = flux_cmd_create (0, NULL, NULL)))
        return -1;
    json_array_foreach (shell->command, i, value) {
        if (flux_cmd_argv_append (task->cmd, json_string_value (value)) < 0)
            return -1;
    }
    json_object_foreach (shell->env, name, value) {
        const char *s = json_string_value (value);
        if (s && flux_cmd_setenvf (task->cmd, 1, name, "%s", s) < 0)
            return -1;
    }
    if (flux_cmd_setenvf (task->cmd, 1, "FLUX_TASK_LOCAL_ID", "%d", index) < 0
        || flux_cmd_setenvf (task->cmd, 1, "FLUX_TASK_RANK", "%d", task->rank))
        return -1;
    return 0;
}

static void task_start (flux_shell_t *shell, struct shell_task *task)
{
    static const flux_subprocess_ops_t ops = {
        .on_completion = task_completion_cb,
        .on_stdout = task_output_cb,
        .on_stderr = task_output_cb,
    };
    const flux_subprocess_hooks_t hooks = {
        .pre_exec = task_exec_cb,
        .pre_exec_arg = task,
    };
    int flags = 0;

    shell->current = task;
    call_plugins (shell, "task.init");
    if (json_integer_value (json_object_get (shell->options, "nosetpgrp")))
        flags |= FLUX_SUBPROCESS_FLAGS_NO_SETPGRP;
    if (!(task->proc = flux_local_exec_ex (shell->r,
                                           flags,
                                           task->cmd,
                                           &ops,
                                           &hooks,
                                           NULL,
                                           NULL)))
        shell_die (errno == EPERM || errno == EACCES ? 126
                   : errno == ENOENT ? 127 : 1,
                   "task %d (host %s): start failed: %s: %s",
                   task->rank,
                   shell->nodes[shell->rank].host,
                   flux_cmd_arg (task->cmd, 0),
                   strerror (errno));
    if (flux_subprocess_aux_set (task->proc, "task", task, NULL) < 0
        || flux_shell_add_completion_ref (shell, "task%d", task->rank) < 0)
        shell_die_errno (1, "task %d", task->rank);
    shell->running++;
    call_plugins (shell, "task.fork");
    shell->current = NULL;
}

static void tasks_destroy (flux_shell_t *shell)
{
    for (int i = 0; i < shell->ntasks_local; i++) {
        struct shell_task *task = &shell->tasks[i];
        flux_subprocess_destroy (task->proc);
        flux_cmd_destroy (task->cmd);
    }
    free (shell->tasks);
}

static void shell_init (flux_shell_t *shell, unsigned int broker_rank)
{
    if (connect_flux (shell, broker_rank) < 0)
        shell_die (1, "cannot find out about the job");
    shell->log_level = FLUX_SHELL_NOTICE + shell->verbose;
    change_directory (shell);
    if (shell_io_init (shell) < 0
        || shell_doom_init (shell) < 0
        || forward_signals (shell) < 0)
        shell_die_errno (1, "shell initialization");
    if (shell_plugins_load (shell) < 0)
        shell_die (1, "failed to load plugins");
    if (set_environment (shell) < 0)
        shell_die_errno (1, "cannot set the environment of the job");
    set_limits (shell);
    shell->ntasks_local = shell->nodes[shell->rank].ntasks;
    if (!(shell->tasks = calloc (shell->ntasks_local + 1,
                                 sizeof (shell->tasks[0]))))
        shell_die_errno (1, "tasks");
    call_plugins (shell, "shell.init");
    /* Only now, so that plugins could change the environment. */
    for (int i = 0; i < shell->ntasks_local; i++) {
        if (task_init (shell, i) < 0)
            shell_die_errno (1, "task %d", i);
    }
}

static void post_event (flux_shell_t *shell, const char *name)
{
    if (shell->rank == 0 && shell_exec_event (shell, name) < 0)
        shell_die_errno (1, "failed to emit event %s", name);
}

static int shell_run (flux_shell_t *shell)
{
    int rc = 0;

    barrier (shell);
    post_event (shell, "shell.init");
    call_plugins (shell, "shell.post-init");
    for (int i = 0; i < shell->ntasks_local; i++)
        task_start (shell, &shell->tasks[i]);
    call_plugins (shell, "shell.start");
    if (shell_io_start (shell) < 0)
        shell_die_errno (1, "standard input");
    barrier (shell);
    post_event (shell, "shell.start");
    if (json_object_size (shell->refs) > 0
        && flux_reactor_run (shell->r, 0) < 0)
        shell_log_errno ("flux_reactor_run");
    if (flux_shell_plugstack_call (shell, "shell.exit", NULL) < 0) {
        shell_log_error ("shell.exit: a plugin has failed");
        rc = 1;
    }
    for (int i = 0; i < shell->ntasks_local; i++) {
        if (shell->tasks[i].rc > rc)
            rc = shell->tasks[i].rc;
    }
    return rc;
}

int main (int argc, char *argv[])
{
    static flux_shell_t shell;
    char *end;
    unsigned long rank;
    int rc;

    setlocale (LC_ALL, "");
    signal (SIGPIPE, SIG_IGN);
    (void)prctl (PR_SET_PDEATHSIG, SIGKILL);    // job-exec was killed
    shell_log_init (&shell);
    if (argc != 3
        || flux_job_id_parse (argv[1], &shell.id) < 0
        || (rank = strtoul (argv[2], &end, 10), end == argv[2] || *end)) {
        fprintf (stderr, "Usage: flux-shell JOBID RANK\n");
        return 1;
    }
    if (!(shell.refs = json_object ())
        || !(shell.event_context = json_object ()))
        return 1;
    shell_init (&shell, rank);
    rc = shell_run (&shell);

    tasks_destroy (&shell);
    shell_io_fini (&shell);
    shell_doom_fini (&shell);
    shell_plugins_unload (&shell);
    shell_info_fini (&shell);
    json_decref (shell.refs);
    flux_close (shell.h);
    flux_reactor_destroy (shell.r);
    return rc;
}

// vi: ts=4 sw=4 expandtab

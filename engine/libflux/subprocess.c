/* SPDX-License-Identifier: LGPL-3.0-only */
/* subprocess.c - flux_local_exec*, flux_subprocess_*: processes on this host.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "common/process_watcher.h"

#include "subprocess_private.h"

extern char **environ;

void subprocess_decref (flux_subprocess_t *p)
{
    struct channel *ch;

    if (--p->refcount > 0)
        return;
    while ((ch = p->channels)) {
        p->channels = ch->next;
        channel_destroy (ch);
    }
    process_watcher_destroy (p->exit_watcher);
    if (p->pid > 0 && p->state == FLUX_SUBPROCESS_RUNNING)
        (void)waitpid (p->pid, NULL, WNOHANG);
    flux_future_destroy (p->aux);
    flux_cmd_destroy (p->cmd);
    free (p);
}

void flux_subprocess_destroy (flux_subprocess_t *p)
{
    if (p) {
        ERRNO_SAFE_BLOCK;
        p->ops = (flux_subprocess_ops_t){ 0 }; // no more callbacks
        flux_watcher_stop (p->exit_watcher);
        for (struct channel *ch = p->channels; ch; ch = ch->next) {
            flux_watcher_stop (ch->reader);
            flux_watcher_stop (ch->writer);
        }
        subprocess_decref (p);
    }
}

void subprocess_check_complete (flux_subprocess_t *p)
{
    if (p->completed || p->state != FLUX_SUBPROCESS_EXITED)
        return;
    for (struct channel *ch = p->channels; ch; ch = ch->next) {
        if (ch->readable && !ch->eof_told)
            return;
    }
    p->completed = true;
    if (p->ops.on_completion)
        p->ops.on_completion (p);
}

/* Starting
 */

/* In the child: give streams their places, then become the program.
 */
static void child (flux_subprocess_t *p, const flux_subprocess_hooks_t *hooks,
                   int error_fd)
{
    static const char *const std[] = { "stdin", "stdout", "stderr" };
    sigset_t none;
    int e;

    sigemptyset (&none);
    (void)sigprocmask (SIG_SETMASK, &none, NULL);
    for (int sig = 1; sig < NSIG; sig++)
        (void)signal (sig, SIG_DFL);
    if (!(p->flags & FLUX_SUBPROCESS_FLAGS_NO_SETPGRP))
        (void)setpgid (0, 0);
    for (struct channel *ch = p->channels; ch; ch = ch->next) {
        for (int i = 0; i < 3; i++) {
            if (strcmp (ch->name, std[i]) == 0 && dup2 (ch->child_fd, i) < 0)
                goto error;
        }
    }
    if (hooks && hooks->pre_exec)
        hooks->pre_exec (p, hooks->pre_exec_arg);
    if (p->cmd->env.v)
        environ = p->cmd->env.v;
    else
        clearenv ();
    execvp (p->cmd->argv.v[0], p->cmd->argv.v);
error:
    e = errno;
    if (write (error_fd, &e, sizeof (e)) < 0)
        _exit (126);
    _exit (127);
}

/* Fork, and wait until the program runs or the child says why not.
 */
static int start (flux_subprocess_t *p, const flux_subprocess_hooks_t *hooks)
{
    int fd[2];
    int errnum = 0;
    ssize_t n;

    if (pipe2 (fd, O_CLOEXEC) < 0)
        return -1;
    if ((p->pid = fork ()) < 0) {
        close (fd[0]);
        close (fd[1]);
        return -1;
    }
    if (p->pid == 0)
        child (p, hooks, fd[1]);
    close (fd[1]);
    if (hooks && hooks->post_fork)
        hooks->post_fork (p, hooks->post_fork_arg);
    while ((n = read (fd[0], &errnum, sizeof (errnum))) < 0 && errno == EINTR)
        ;
    close (fd[0]);
    if (n == sizeof (errnum)) {
        (void)waitpid (p->pid, NULL, 0);
        p->pid = -1;
        errno = errnum;
        return -1;
    }
    return 0;
}

static void exit_cb (flux_reactor_t *r, flux_watcher_t *w,
                     int revents, void *arg)
{
    flux_subprocess_t *p = arg;

    if (waitpid (p->pid, &p->status, WNOHANG) == 0)
        return;
    flux_watcher_stop (w);
    p->state = FLUX_SUBPROCESS_EXITED;
    p->refcount++;
    if (p->ops.on_state_change)
        p->ops.on_state_change (p, p->state);
    subprocess_check_complete (p);
    subprocess_decref (p);
}

flux_subprocess_t *flux_local_exec_ex (flux_reactor_t *r, int flags,
                                       const flux_cmd_t *cmd,
                                       const flux_subprocess_ops_t *ops,
                                       const flux_subprocess_hooks_t *hooks,
                                       subprocess_log_f log_fn,
                                       void *log_data)
{
    int valid = FLUX_SUBPROCESS_FLAGS_STDIO_FALLTHROUGH
                | FLUX_SUBPROCESS_FLAGS_NO_SETPGRP
                | FLUX_SUBPROCESS_FLAGS_FORK_EXEC;
    flux_subprocess_t *p;

    if (!r || !cmd || cmd->argv.count == 0 || (flags & ~valid)) {
        errno = EINVAL;
        return NULL;
    }
    if (!(p = calloc (1, sizeof (*p))))
        return NULL;
    p->refcount = 1;
    p->r = r;
    p->flags = flags;
    if (ops)
        p->ops = *ops;
    if (!(p->cmd = flux_cmd_copy (cmd))
        || !(p->aux = flux_future_create (NULL, NULL)))
        goto error;
    if (!(flags & FLUX_SUBPROCESS_FLAGS_STDIO_FALLTHROUGH)
        && (channel_create (p, "stdin") < 0
            || channel_create (p, "stdout") < 0
            || channel_create (p, "stderr") < 0))
        goto error;
    if (start (p, hooks) < 0)
        goto error;
    p->state = FLUX_SUBPROCESS_RUNNING;
    for (struct channel *ch = p->channels; ch; ch = ch->next) {
        close (ch->child_fd);
        ch->child_fd = -1;
    }
    if ((p->exit_watcher = process_watcher_create (r, p->pid, exit_cb, p)))
        return p;
    (void)kill (p->pid, SIGKILL);
error:
    flux_subprocess_destroy (p);
    return NULL;
}

flux_subprocess_t *flux_local_exec (flux_reactor_t *r, int flags,
                                    const flux_cmd_t *cmd,
                                    const flux_subprocess_ops_t *ops)
{
    return flux_local_exec_ex (r, flags, cmd, ops, NULL, NULL, NULL);
}

/* The future is ready at once: there is nobody to ask.
 */
flux_future_t *flux_subprocess_kill (flux_subprocess_t *p, int signum)
{
    flux_future_t *f;
    pid_t pid;

    if (!p || signum <= 0) {
        errno = EINVAL;
        return NULL;
    }
    if (p->state != FLUX_SUBPROCESS_RUNNING) {
        errno = ESRCH;
        return NULL;
    }
    if (!(f = flux_future_create (NULL, NULL)))
        return NULL;
    flux_future_set_reactor (f, p->r);
    pid = p->flags & FLUX_SUBPROCESS_FLAGS_NO_SETPGRP ? p->pid : -p->pid;
    if (kill (pid, signum) < 0)
        flux_future_fulfill_error (f, errno, NULL);
    else
        flux_future_fulfill (f, NULL, NULL);
    return f;
}

/* Accessors
 */

flux_subprocess_state_t flux_subprocess_state (flux_subprocess_t *p)
{
    return p ? p->state : FLUX_SUBPROCESS_FAILED;
}

const char *flux_subprocess_state_string (flux_subprocess_state_t state)
{
    static const char *const names[] = {
        "Init", "Running", "Exited", "Failed", "Stopped",
    };

    return state <= FLUX_SUBPROCESS_STOPPED ? names[state] : NULL;
}

bool flux_subprocess_active (flux_subprocess_t *p)
{
    return p && p->state == FLUX_SUBPROCESS_RUNNING;
}

static bool has_exited (flux_subprocess_t *p)
{
    if (p && p->state == FLUX_SUBPROCESS_EXITED)
        return true;
    errno = EINVAL;
    return false;
}

int flux_subprocess_status (flux_subprocess_t *p)
{
    return has_exited (p) ? p->status : -1;
}

int flux_subprocess_exit_code (flux_subprocess_t *p)
{
    errno = EINVAL;
    return has_exited (p) && WIFEXITED (p->status) ? WEXITSTATUS (p->status)
                                                   : -1;
}

int flux_subprocess_signaled (flux_subprocess_t *p)
{
    errno = EINVAL;
    return has_exited (p) && WIFSIGNALED (p->status) ? WTERMSIG (p->status)
                                                     : -1;
}

pid_t flux_subprocess_pid (flux_subprocess_t *p)
{
    return p ? p->pid : -1;
}

void *flux_subprocess_aux_get (flux_subprocess_t *p, const char *name)
{
    if (!p) {
        errno = EINVAL;
        return NULL;
    }
    return flux_future_aux_get (p->aux, name);
}

int flux_subprocess_aux_set (flux_subprocess_t *p, const char *name, void *ctx,
                             flux_free_f free)
{
    if (!p) {
        errno = EINVAL;
        return -1;
    }
    return flux_future_aux_set (p->aux, name, ctx, free);
}

// vi: ts=4 sw=4 expandtab

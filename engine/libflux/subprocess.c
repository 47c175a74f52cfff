/* SPDX-License-Identifier: LGPL-3.0-only */
/* subprocess.c - flux_cmd_*, flux_local_exec*, flux_subprocess_*: processes on
 * this host.  Output waits in memory until the owner reads it, input until the
 * process takes it.
 */
#include <argz.h>
#include <envz.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <flux/core.h>

#include "common/process_watcher.h"
#include "common/va.h"
#include "libutil/errno_safe.h"

#define READ_SIZE 65536

struct flux_command {
    char *argv, *env;           // see argz_add(3)
    size_t argv_len, env_len;
};

struct stream {
    flux_subprocess_t *p;
    int fd;                     // our end, -1 once closed
    int child_fd;
    flux_watcher_t *w;
    char *buf;                  // not yet taken, by the owner or the process
    size_t len;
    char *last;                 // the last line that the owner has taken
    bool eof;                   // from the process, or to come for it
    bool eof_told;
};

struct flux_subprocess {
    flux_cmd_t *cmd;
    flux_reactor_t *r;
    flux_subprocess_ops_t ops;
    int flags;
    int refcount;               // of the owner, and of callbacks under way
    bool exited;
    pid_t pid;
    int status;
    flux_watcher_t *exit_watcher;
    struct stream streams[3];   // standard input, output, error
    flux_future_t *aux;         // container of aux items
};

static const char *const names[] = { "stdin", "stdout", "stderr" };

static int fail (int errnum)
{
    errno = errnum;
    return -1;
}

/* Commands */

void flux_cmd_destroy (flux_cmd_t *cmd)
{
    if (cmd) {
        ERRNO_SAFE_BLOCK;
        free (cmd->argv);
        free (cmd->env);
        free (cmd);
    }
}

flux_cmd_t *flux_cmd_create (int argc, char *argv[], char **env)
{
    char *none[] = { NULL };
    flux_cmd_t *cmd;

    if (argc < 0 || (argc > 0 && !argv) || (argv && argv[argc])) {
        errno = EINVAL;
        return NULL;
    }
    if (!(cmd = calloc (1, sizeof (*cmd)))
        || argz_create (argv ? argv : none, &cmd->argv, &cmd->argv_len) != 0
        || argz_create (env ? env : none, &cmd->env, &cmd->env_len) != 0) {
        flux_cmd_destroy (cmd);
        errno = ENOMEM;
        return NULL;
    }
    return cmd;
}

flux_cmd_t *flux_cmd_copy (const flux_cmd_t *src)
{
    flux_cmd_t *cmd = flux_cmd_create (0, NULL, NULL);

    if (cmd
        && (argz_append (&cmd->argv, &cmd->argv_len,
                         src->argv, src->argv_len) != 0
            || argz_append (&cmd->env, &cmd->env_len,
                            src->env, src->env_len) != 0)) {
        flux_cmd_destroy (cmd);
        errno = ENOMEM;
        return NULL;
    }
    return cmd;
}

const char *flux_cmd_arg (const flux_cmd_t *cmd, int n)
{
    const char *arg = NULL;

    while (n-- >= 0 && (arg = argz_next (cmd->argv, cmd->argv_len, arg)))
        ;
    if (!arg)
        errno = EINVAL;
    return arg;
}

int flux_cmd_argv_append (flux_cmd_t *cmd, const char *arg)
{
    if (!arg)
        return fail (EINVAL);
    return argz_add (&cmd->argv, &cmd->argv_len, arg) ? fail (ENOMEM) : 0;
}

int flux_cmd_setenvf (flux_cmd_t *cmd, int overwrite, const char *name,
                      const char *fmt, ...)
{
    char *value;
    int e;

    if (!overwrite && envz_entry (cmd->env, cmd->env_len, name))
        return 0;
    if (VA (fmt, vasprintf (&value, fmt, ap)) < 0)
        return -1;
    e = envz_add (&cmd->env, &cmd->env_len, name, value);
    free (value);
    return e ? fail (ENOMEM) : 0;
}

/* Life */

static void stream_close (struct stream *s)
{
    flux_watcher_destroy (s->w);
    s->w = NULL;
    if (s->fd >= 0)
        close (s->fd);
    s->fd = -1;
}

static void decref (flux_subprocess_t *p)
{
    if (--p->refcount > 0)
        return;
    for (int i = 0; i < 3; i++) {
        struct stream *s = &p->streams[i];
        stream_close (s);
        if (s->child_fd >= 0)
            close (s->child_fd);
        free (s->buf);
        free (s->last);
    }
    process_watcher_destroy (p->exit_watcher);
    if (p->pid > 0 && !p->exited)
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
        for (int i = 0; i < 3; i++)
            flux_watcher_stop (p->streams[i].w);
        decref (p);
    }
}

/* Completion is the end of the process and of both output streams. */
static void check_complete (flux_subprocess_t *p)
{
    if (p->exited && p->streams[1].eof_told && p->streams[2].eof_told
        && p->ops.on_completion) {
        flux_subprocess_f cb = p->ops.on_completion;
        p->ops.on_completion = NULL;
        cb (p);
    }
}

static void exit_cb (flux_reactor_t *r, flux_watcher_t *w,
                     int revents, void *arg)
{
    flux_subprocess_t *p = arg;

    if (waitpid (p->pid, &p->status, WNOHANG) == 0)
        return;
    flux_watcher_stop (w);
    p->exited = true;
    p->refcount++;
    if (p->ops.on_state_change)
        p->ops.on_state_change (p, FLUX_SUBPROCESS_EXITED);
    check_complete (p);
    decref (p);
}

/* Streams */

/* Tell the owner of each line, and with nothing to read of the end.  An owner
 * that leaves a line hears of it again when there is more.
 */
static void deliver (struct stream *s)
{
    flux_subprocess_t *p = s->p;
    bool is_out = s == &p->streams[1];
    flux_subprocess_output_f cb;

    p->refcount++;
    while ((cb = is_out ? p->ops.on_stdout : p->ops.on_stderr)
           && s->len > 0 && (s->eof || memchr (s->buf, '\n', s->len))) {
        size_t before = s->len;
        cb (p, names[is_out ? 1 : 2]);
        if (s->len == before)
            break;
    }
    if (s->eof && !s->eof_told) {
        s->eof_told = true;
        if ((cb = is_out ? p->ops.on_stdout : p->ops.on_stderr))
            cb (p, names[is_out ? 1 : 2]);
        check_complete (p);
    }
    decref (p);
}

static void reader_cb (flux_reactor_t *r, flux_watcher_t *w,
                       int revents, void *arg)
{
    struct stream *s = arg;
    char *buf = realloc (s->buf, s->len + READ_SIZE);
    ssize_t n;

    if (!buf)
        return;
    s->buf = buf;
    n = read (s->fd, buf + s->len, READ_SIZE);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        s->len += n;
    else {
        s->eof = true;
        flux_watcher_stop (w);
    }
    deliver (s);
}

static void writer_cb (flux_reactor_t *r, flux_watcher_t *w,
                       int revents, void *arg)
{
    struct stream *s = arg;
    ssize_t n = write (s->fd, s->buf, s->len);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {                // the process has closed its end
        stream_close (s);
        return;
    }
    s->len -= n;
    memmove (s->buf, s->buf + n, s->len);
    if (s->len == 0) {
        flux_watcher_stop (w);
        if (s->eof)
            stream_close (s);
    }
}

static int stream_open (flux_subprocess_t *p, int i)
{
    struct stream *s = &p->streams[i];
    int fd[2];

    s->p = p;
    if (pipe2 (fd, O_CLOEXEC) < 0)
        return -1;
    s->fd = fd[i == 0];
    s->child_fd = fd[i != 0];
    if (fcntl (s->fd, F_SETFL, O_NONBLOCK) < 0
        || !(s->w = flux_fd_watcher_create (p->r, s->fd,
                                            i == 0 ? FLUX_POLLOUT : FLUX_POLLIN,
                                            i == 0 ? writer_cb : reader_cb,
                                            s)))
        return -1;
    if (i > 0)
        flux_watcher_start (s->w);
    return 0;
}

/* A line; at the end of the stream, what is left of one. */
int flux_subprocess_getline (flux_subprocess_t *p, const char *stream,
                             const char **bufp)
{
    struct stream *s;
    char *end;
    size_t n;

    if (!p || !bufp || (stream && !strcmp (stream, names[0])))
        return fail (EINVAL);
    s = &p->streams[stream && !strcmp (stream, names[2]) ? 2 : 1];
    end = s->len > 0 ? memchr (s->buf, '\n', s->len) : NULL;
    n = end ? (size_t)(end - s->buf) + 1 : s->eof ? s->len : 0;
    free (s->last);
    if (!(s->last = malloc (n + 1)))
        return -1;
    if (n > 0)
        memcpy (s->last, s->buf, n);
    s->last[n] = '\0';
    s->len -= n;
    if (s->len > 0)
        memmove (s->buf, s->buf + n, s->len);
    *bufp = s->last;
    return n;
}

static struct stream *input (flux_subprocess_t *p, const char *stream)
{
    if (p && (!stream || !strcmp (stream, names[0])))
        return &p->streams[0];
    errno = EINVAL;
    return NULL;
}

int flux_subprocess_write (flux_subprocess_t *p, const char *stream,
                           const char *buf, size_t len)
{
    struct stream *s = input (p, stream);
    char *cpy;

    if (!s || !buf)
        return fail (EINVAL);
    if (s->fd < 0 || s->eof)
        return fail (EPIPE);
    if (!(cpy = realloc (s->buf, s->len + len + 1)))
        return -1;
    s->buf = cpy;
    memcpy (cpy + s->len, buf, len);
    s->len += len;
    flux_watcher_start (s->w);
    return len;
}

int flux_subprocess_close (flux_subprocess_t *p, const char *stream)
{
    struct stream *s = input (p, stream);

    if (!s)
        return -1;
    s->eof = true;
    if (s->len == 0)
        stream_close (s);
    return 0;
}

/* Start */

/* In the child: become the program, or report why not. */
static void child (flux_subprocess_t *p, const flux_subprocess_hooks_t *hooks,
                   char **argv, char **env, int error_fd)
{
    sigset_t none;
    int e;

    sigemptyset (&none);
    (void)sigprocmask (SIG_SETMASK, &none, NULL);
    for (int sig = 1; sig < NSIG; sig++)
        (void)signal (sig, SIG_DFL);
    if (!(p->flags & FLUX_SUBPROCESS_FLAGS_NO_SETPGRP))
        (void)setpgid (0, 0);
    if (dup2 (p->streams[0].child_fd, 0) == 0
        && dup2 (p->streams[1].child_fd, 1) == 1
        && dup2 (p->streams[2].child_fd, 2) == 2) {
        if (hooks && hooks->pre_exec)
            hooks->pre_exec (p, hooks->pre_exec_arg);
        environ = env;
        execvp (argv[0], argv);
    }
    e = errno;
    _exit (write (error_fd, &e, sizeof (e)) < 0 ? 126 : 127);
}

/* Fork, and wait until the program runs or the child reports an errno. */
static int start (flux_subprocess_t *p, const flux_subprocess_hooks_t *hooks)
{
    const flux_cmd_t *cmd = p->cmd;
    char *argv[argz_count (cmd->argv, cmd->argv_len) + 1];
    char *env[argz_count (cmd->env, cmd->env_len) + 1];
    int errnum = 0;
    int fd[2];

    argz_extract (cmd->argv, cmd->argv_len, argv);
    argz_extract (cmd->env, cmd->env_len, env);
    if (pipe2 (fd, O_CLOEXEC) < 0)
        return -1;
    if ((p->pid = fork ()) == 0)
        child (p, hooks, argv, env, fd[1]);
    ERRNO_SAFE (close (fd[1]));
    while (p->pid > 0 && read (fd[0], &errnum, sizeof (errnum)) < 0
           && errno == EINTR)
        ;
    ERRNO_SAFE (close (fd[0]));
    if (errnum) {
        (void)waitpid (p->pid, NULL, 0);
        p->pid = -1;
        errno = errnum;
    }
    return p->pid > 0 ? 0 : -1;
}

flux_subprocess_t *flux_local_exec_ex (flux_reactor_t *r, int flags,
                                       const flux_cmd_t *cmd,
                                       const flux_subprocess_ops_t *ops,
                                       const flux_subprocess_hooks_t *hooks,
                                       subprocess_log_f log_fn,
                                       void *log_data)
{
    flux_subprocess_t *p;

    if (!r || !cmd || cmd->argv_len == 0
        || (flags & ~(FLUX_SUBPROCESS_FLAGS_NO_SETPGRP
                      | FLUX_SUBPROCESS_FLAGS_FORK_EXEC))) {
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
    for (int i = 0; i < 3; i++)
        p->streams[i].fd = p->streams[i].child_fd = -1;
    if (!(p->cmd = flux_cmd_copy (cmd))
        || !(p->aux = flux_future_create (NULL, NULL))
        || stream_open (p, 0) < 0
        || stream_open (p, 1) < 0
        || stream_open (p, 2) < 0
        || start (p, hooks) < 0)
        goto error;
    for (int i = 0; i < 3; i++) {
        close (p->streams[i].child_fd);
        p->streams[i].child_fd = -1;
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

/* Fulfilled at once: the process is here. */
flux_future_t *flux_subprocess_kill (flux_subprocess_t *p, int signum)
{
    flux_future_t *f;

    if (!p || signum <= 0 || p->exited) {
        errno = p && signum > 0 ? ESRCH : EINVAL;
        return NULL;
    }
    if (!(f = flux_future_create (NULL, NULL)))
        return NULL;
    flux_future_set_reactor (f, p->r);
    if (kill (p->flags & FLUX_SUBPROCESS_FLAGS_NO_SETPGRP ? p->pid : -p->pid,
              signum) < 0)
        flux_future_fulfill_error (f, errno, NULL);
    else
        flux_future_fulfill (f, NULL, NULL);
    return f;
}

/* State */

flux_subprocess_state_t flux_subprocess_state (flux_subprocess_t *p)
{
    return !p ? FLUX_SUBPROCESS_FAILED
           : p->exited ? FLUX_SUBPROCESS_EXITED : FLUX_SUBPROCESS_RUNNING;
}

bool flux_subprocess_active (flux_subprocess_t *p)
{
    return p && !p->exited;
}

int flux_subprocess_status (flux_subprocess_t *p)
{
    return p && p->exited ? p->status : fail (EINVAL);
}

int flux_subprocess_exit_code (flux_subprocess_t *p)
{
    return p && p->exited && WIFEXITED (p->status) ? WEXITSTATUS (p->status)
                                                   : fail (EINVAL);
}

int flux_subprocess_signaled (flux_subprocess_t *p)
{
    return p && p->exited && WIFSIGNALED (p->status) ? WTERMSIG (p->status)
                                                     : fail (EINVAL);
}

void *flux_subprocess_aux_get (flux_subprocess_t *p, const char *name)
{
    return flux_future_aux_get (p->aux, name);
}

int flux_subprocess_aux_set (flux_subprocess_t *p, const char *name, void *ctx,
                             flux_free_f free)
{
    return flux_future_aux_set (p->aux, name, ctx, free);
}

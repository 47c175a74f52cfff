/* SPDX-License-Identifier: LGPL-3.0-only */
/* subprocess.c - flux_local_exec*, flux_subprocess_*: processes on this host.
 *
 * A process is watched through a pidfd rather than SIGCHLD, so that any
 * thread with a reactor can have children, broker modules included.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "subprocess_private.h"

extern char **environ;

#define READ_SIZE 65536
#define POLL_INTERVAL 0.01

/* One stream: stdin is only written, stdout and stderr are only read, and a
 * channel is both.
 */
struct channel {
    struct channel *next;
    flux_subprocess_t *p;
    char *name;
    int fd;                     // our end, -1 when closed
    int child_fd;
    bool readable;
    bool line_buffered;
    bool eof_seen;              // by read(2)
    bool eof_told;              // to the callback
    bool close_pending;         // once 'out' is written
    bool stopped;
    char *in;
    size_t in_len;
    char *last;                 // what the last read function returned
    char *out;
    size_t out_len;
    flux_watcher_t *reader;
    flux_watcher_t *writer;
};

struct flux_subprocess {
    flux_reactor_t *r;
    flux_cmd_t *cmd;
    flux_subprocess_ops_t ops;
    int flags;
    int refcount;
    flux_subprocess_state_t state;
    pid_t pid;
    int pidfd;
    flux_watcher_t *exit_watcher;
    int status;
    int holds;                  // channel references that delay completion
    bool completed;
    struct channel *channels;
    flux_future_t *aux;         // container of aux items
};

static void channel_destroy (struct channel *ch)
{
    flux_watcher_destroy (ch->reader);
    flux_watcher_destroy (ch->writer);
    if (ch->fd >= 0)
        close (ch->fd);
    if (ch->child_fd >= 0)
        close (ch->child_fd);
    free (ch->name);
    free (ch->in);
    free (ch->last);
    free (ch->out);
    free (ch);
}

static void decref (flux_subprocess_t *p)
{
    struct channel *ch;

    if (--p->refcount > 0)
        return;
    while ((ch = p->channels)) {
        p->channels = ch->next;
        channel_destroy (ch);
    }
    flux_watcher_destroy (p->exit_watcher);
    if (p->pidfd >= 0)
        close (p->pidfd);
    if (p->pid > 0 && p->state == FLUX_SUBPROCESS_RUNNING)
        (void)waitpid (p->pid, NULL, WNOHANG);
    flux_future_destroy (p->aux);
    flux_cmd_destroy (p->cmd);
    free (p);
}

void flux_subprocess_destroy (flux_subprocess_t *p)
{
    if (p) {
        int saved_errno = errno;
        p->ops = (flux_subprocess_ops_t){ 0 }; // no more callbacks
        flux_watcher_stop (p->exit_watcher);
        for (struct channel *ch = p->channels; ch; ch = ch->next) {
            flux_watcher_stop (ch->reader);
            flux_watcher_stop (ch->writer);
        }
        decref (p);
        errno = saved_errno;
    }
}

static struct channel *find_channel (flux_subprocess_t *p, const char *name)
{
    for (struct channel *ch = p ? p->channels : NULL; ch; ch = ch->next) {
        if (!name || strcmp (ch->name, name) == 0)
            return ch;
    }
    errno = EINVAL;
    return NULL;
}

static void check_complete (flux_subprocess_t *p)
{
    if (p->completed || p->state != FLUX_SUBPROCESS_EXITED || p->holds > 0)
        return;
    for (struct channel *ch = p->channels; ch; ch = ch->next) {
        if (ch->readable && !ch->eof_told && strncmp (ch->name, "std", 3) == 0)
            return;
    }
    p->completed = true;
    if (p->ops.on_completion)
        p->ops.on_completion (p);
}

/* Reading
 */

static flux_subprocess_output_f output_op (struct channel *ch)
{
    flux_subprocess_ops_t *ops = &ch->p->ops;

    return strcmp (ch->name, "stdout") == 0 ? ops->on_stdout
           : strcmp (ch->name, "stderr") == 0 ? ops->on_stderr
           : ops->on_channel_out;
}

static bool has_output (struct channel *ch)
{
    return ch->in_len > 0
           && (!ch->line_buffered
               || ch->eof_seen
               || memchr (ch->in, '\n', ch->in_len));
}

/* One call per line, or chunk, and a last one with nothing to read.  The
 * callback that takes nothing is not called again before there is more.
 */
static void deliver (struct channel *ch)
{
    flux_subprocess_t *p = ch->p;
    flux_subprocess_output_f op;

    p->refcount++;
    while (!ch->stopped && has_output (ch) && (op = output_op (ch))) {
        size_t before = ch->in_len;
        op (p, ch->name);
        if (ch->in_len == before)
            break;
    }
    if (ch->eof_seen && !ch->eof_told && !ch->stopped) {
        ch->eof_told = true;
        if ((op = output_op (ch)))
            op (p, ch->name);
        check_complete (p);
    }
    decref (p);
}

static void reader_cb (flux_reactor_t *r, flux_watcher_t *w,
                       int revents, void *arg)
{
    struct channel *ch = arg;
    char *buf = realloc (ch->in, ch->in_len + READ_SIZE + 1);
    ssize_t n;

    if (!buf)
        return;
    ch->in = buf;
    n = read (ch->fd, buf + ch->in_len, READ_SIZE);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        ch->in_len += n;
    else {
        ch->eof_seen = true;
        flux_watcher_stop (w);
    }
    deliver (ch);
}

enum { READ_ANY, READ_LINE, READ_TRIMMED, READ_LINE_OR_REST };

static int take (flux_subprocess_t *p, const char *name, const char **bufp,
                 int how)
{
    struct channel *ch = find_channel (p, name ? name : "stdout");
    char *nl;
    size_t n;
    size_t keep;

    if (!ch || !ch->readable || !bufp) {
        errno = EINVAL;
        return -1;
    }
    nl = ch->in_len > 0 ? memchr (ch->in, '\n', ch->in_len) : NULL;
    if (how == READ_ANY || (!nl && how == READ_LINE_OR_REST
                            && (ch->eof_seen || !ch->line_buffered)))
        n = ch->in_len;
    else
        n = nl ? (size_t)(nl - ch->in) + 1 : 0;
    keep = n;
    if (how == READ_TRIMMED && n > 0)
        keep--;
    free (ch->last);
    if (!(ch->last = malloc (n + 1)))
        return -1;
    if (n > 0)
        memcpy (ch->last, ch->in, n);
    ch->last[keep] = '\0';
    ch->in_len -= n;
    if (ch->in_len > 0)
        memmove (ch->in, ch->in + n, ch->in_len);
    *bufp = ch->last;
    return keep;
}

int flux_subprocess_read (flux_subprocess_t *p, const char *stream,
                          const char **bufp)
{
    return take (p, stream, bufp, READ_ANY);
}

int flux_subprocess_read_line (flux_subprocess_t *p, const char *stream,
                               const char **bufp)
{
    return take (p, stream, bufp, READ_LINE);
}

int flux_subprocess_read_trimmed_line (flux_subprocess_t *p,
                                       const char *stream, const char **bufp)
{
    return take (p, stream, bufp, READ_TRIMMED);
}

int flux_subprocess_getline (flux_subprocess_t *p, const char *stream,
                             const char **bufp)
{
    return take (p, stream, bufp, READ_LINE_OR_REST);
}

bool flux_subprocess_read_stream_closed (flux_subprocess_t *p,
                                         const char *stream)
{
    struct channel *ch = find_channel (p, stream);

    return ch && ch->eof_seen;
}

static void set_stopped (flux_subprocess_t *p, const char *name, bool stopped)
{
    struct channel *ch = find_channel (p, name);

    if (!ch || !ch->readable)
        return;
    ch->stopped = stopped;
    if (stopped)
        flux_watcher_stop (ch->reader);
    else if (!ch->eof_seen)
        flux_watcher_start (ch->reader);
    if (!stopped)
        deliver (ch);
}

void flux_subprocess_stream_start (flux_subprocess_t *p, const char *stream)
{
    set_stopped (p, stream, false);
}

void flux_subprocess_stream_stop (flux_subprocess_t *p, const char *stream)
{
    set_stopped (p, stream, true);
}

/* Writing
 */

static void close_out (struct channel *ch)
{
    flux_watcher_stop (ch->writer);
    ch->out_len = 0;
    if (ch->readable)
        (void)shutdown (ch->fd, SHUT_WR);
    else if (ch->fd >= 0) {
        flux_watcher_destroy (ch->writer);
        ch->writer = NULL;
        close (ch->fd);
        ch->fd = -1;
    }
}

static void writer_cb (flux_reactor_t *r, flux_watcher_t *w,
                       int revents, void *arg)
{
    struct channel *ch = arg;
    /* A process that has closed its end must not kill us by a signal. */
    ssize_t n = ch->readable
        ? send (ch->fd, ch->out, ch->out_len, MSG_NOSIGNAL)
        : write (ch->fd, ch->out, ch->out_len);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        close_out (ch);
        return;
    }
    ch->out_len -= n;
    memmove (ch->out, ch->out + n, ch->out_len);
    if (ch->out_len == 0) {
        flux_watcher_stop (w);
        if (ch->close_pending)
            close_out (ch);
    }
    if (ch->p->ops.on_credit)
        ch->p->ops.on_credit (ch->p, ch->name, n);
}

int flux_subprocess_write (flux_subprocess_t *p, const char *stream,
                           const char *buf, size_t len)
{
    struct channel *ch = find_channel (p, stream ? stream : "stdin");
    char *out;

    if (!ch || (!ch->writer && ch->readable) || !buf) {
        errno = EINVAL;
        return -1;
    }
    if (ch->fd < 0 || ch->close_pending) {
        errno = EPIPE;
        return -1;
    }
    if (!(out = realloc (ch->out, ch->out_len + len + 1)))
        return -1;
    ch->out = out;
    memcpy (out + ch->out_len, buf, len);
    ch->out_len += len;
    flux_watcher_start (ch->writer);
    return len;
}

int flux_subprocess_close (flux_subprocess_t *p, const char *stream)
{
    struct channel *ch = find_channel (p, stream ? stream : "stdin");

    if (!ch || (!ch->writer && ch->readable)) {
        errno = EINVAL;
        return -1;
    }
    ch->close_pending = true;
    if (ch->out_len == 0)
        close_out (ch);
    return 0;
}

/* Starting
 */

static int channel_create (flux_subprocess_t *p, const char *name)
{
    struct channel *ch;
    int in = strcmp (name, "stdin") == 0;
    int out = !strcmp (name, "stdout") || !strcmp (name, "stderr");
    int fd[2];
    char opt[128];
    const char *s;

    if (!(ch = calloc (1, sizeof (*ch))))
        return -1;
    ch->fd = ch->child_fd = -1;
    ch->p = p;
    ch->next = p->channels;
    p->channels = ch;
    ch->readable = !in;
    snprintf (opt, sizeof (opt), "%s_LINE_BUFFER", name);
    s = flux_cmd_getopt (p->cmd, opt);
    ch->line_buffered = !s || strcmp (s, "false") != 0;
    if (!(ch->name = strdup (name)))
        return -1;
    if (in || out) {
        if (pipe2 (fd, O_CLOEXEC) < 0)
            return -1;
    }
    else if (socketpair (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
        return -1;
    ch->fd = fd[in ? 1 : 0];
    ch->child_fd = fd[in ? 0 : 1];
    if (fcntl (ch->fd, F_SETFL, O_NONBLOCK) < 0)
        return -1;
    if (!in
        && !(ch->reader = flux_fd_watcher_create (p->r,
                                                  ch->fd,
                                                  FLUX_POLLIN,
                                                  reader_cb,
                                                  ch)))
        return -1;
    if (!out
        && !(ch->writer = flux_fd_watcher_create (p->r,
                                                  ch->fd,
                                                  FLUX_POLLOUT,
                                                  writer_cb,
                                                  ch)))
        return -1;
    flux_watcher_start (ch->reader);
    return 0;
}

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
    if (p->cmd->cwd && chdir (p->cmd->cwd) < 0)
        goto error;
    for (struct channel *ch = p->channels; ch; ch = ch->next) {
        bool is_std = false;
        for (int i = 0; i < 3; i++) {
            if (strcmp (ch->name, std[i]) == 0) {
                is_std = true;
                if (dup2 (ch->child_fd, i) < 0)
                    goto error;
            }
        }
        if (!is_std
            && (fcntl (ch->child_fd, F_SETFD, 0) < 0
                || flux_cmd_setenvf (p->cmd,
                                     1,
                                     ch->name,
                                     "%d",
                                     ch->child_fd) < 0))
            goto error;
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
    check_complete (p);
    decref (p);
}

flux_subprocess_t *flux_local_exec_ex (flux_reactor_t *r, int flags,
                                       const flux_cmd_t *cmd,
                                       const flux_subprocess_ops_t *ops,
                                       const flux_subprocess_hooks_t *hooks,
                                       subprocess_log_f log_fn,
                                       void *log_data)
{
    flux_subprocess_t *p;

    if (!r || !cmd || cmd->argv.count == 0) {
        errno = EINVAL;
        return NULL;
    }
    if (!(p = calloc (1, sizeof (*p))))
        return NULL;
    p->refcount = 1;
    p->pidfd = -1;
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
    for (int i = 0; i < cmd->channels.count; i++) {
        if (channel_create (p, cmd->channels.v[i]) < 0)
            goto error;
    }
    if (start (p, hooks) < 0)
        goto error;
    p->state = FLUX_SUBPROCESS_RUNNING;
    for (struct channel *ch = p->channels; ch; ch = ch->next) {
        close (ch->child_fd);
        ch->child_fd = -1;
    }
    if ((p->pidfd = pidfd_open (p->pid, 0)) >= 0)
        p->exit_watcher = flux_fd_watcher_create (r,
                                                  p->pidfd,
                                                  FLUX_POLLIN,
                                                  exit_cb,
                                                  p);
    else // no such system call under some sandboxes and valgrind
        p->exit_watcher = flux_timer_watcher_create (r,
                                                     POLL_INTERVAL,
                                                     POLL_INTERVAL,
                                                     exit_cb,
                                                     p);
    if (!p->exit_watcher)
        goto error_kill;
    flux_watcher_start (p->exit_watcher);
    return p;
error_kill:
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

void flux_subprocess_channel_incref (flux_subprocess_t *p, const char *name)
{
    if (find_channel (p, name))
        p->holds++;
}

void flux_subprocess_channel_decref (flux_subprocess_t *p, const char *name)
{
    if (find_channel (p, name) && p->holds > 0) {
        p->holds--;
        check_complete (p);
    }
}

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

int flux_subprocess_rank (flux_subprocess_t *p)
{
    errno = EINVAL; // local processes have none
    return -1;
}

int flux_subprocess_fail_errno (flux_subprocess_t *p)
{
    return 0; // a process that fails to start is never made
}

const char *flux_subprocess_fail_error (flux_subprocess_t *p)
{
    return "";
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
    return has_exited (p) && WIFEXITED (p->status) ? WEXITSTATUS (p->status)
                                                   : -1;
}

int flux_subprocess_signaled (flux_subprocess_t *p)
{
    return has_exited (p) && WIFSIGNALED (p->status) ? WTERMSIG (p->status)
                                                     : -1;
}

pid_t flux_subprocess_pid (flux_subprocess_t *p)
{
    return p ? p->pid : -1;
}

flux_cmd_t *flux_subprocess_get_cmd (flux_subprocess_t *p)
{
    return p ? p->cmd : NULL;
}

flux_reactor_t *flux_subprocess_get_reactor (flux_subprocess_t *p)
{
    return p ? p->r : NULL;
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

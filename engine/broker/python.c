/* SPDX-License-Identifier: LGPL-3.0-only */
/* python.c - the processes of Python modules.
 *
 * An interpreter loads flux-python once (python-module.py); each module runs
 * in a fork of it, which starts in a tenth of the time that a new interpreter
 * takes.  The broker talks to the interpreter in packets of text:
 *
 *   broker:       "run ID URI PATH", "kill ID"
 *   interpreter:  "ID STATUS"  that process has ended, with waitpid's status
 *
 * An interpreter that loses the broker kills its modules and ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "common/spawn.h"
#include "module.h"

struct python {
    python_ended_f ended;
    void *arg;
    pid_t pid;
    int fd;
    flux_watcher_t *w;
    char *loader;
};

static void python_cb (flux_reactor_t *r,
                       flux_watcher_t *w,
                       int revents,
                       void *arg)
{
    struct python *py = arg;
    char buf[128];
    char id[64];
    int status;
    ssize_t n;

    if ((n = recv (py->fd, buf, sizeof (buf) - 1, 0)) > 0) {
        buf[n] = '\0';
        if (sscanf (buf, "%63s %d", id, &status) == 2)
            py->ended (py->arg, id, status);
    }
    else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        flux_watcher_stop (w);
        py->ended (py->arg, NULL, 0);
    }
}

struct python *python_create (flux_reactor_t *r,
                              python_ended_f ended,
                              void *arg,
                              flux_error_t *error)
{
    char *argv[] = { (char *)python_path (), NULL, NULL };
    int fds[2] = { -1, -1 };
    struct python *py;

    errprintf (error, "out of memory");
    if (!(py = calloc (1, sizeof (*py))))
        return NULL;
    py->ended = ended;
    py->arg = arg;
    py->pid = -1;
    py->fd = -1;
    if (asprintf (&py->loader, "%s/python-module.py", solo_execdir ()) < 0)
        goto error;
    argv[1] = py->loader;
    if (socketpair (AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0) {
        errprintf (error, "socketpair: %s", strerror (errno));
        goto error;
    }
    py->fd = fds[0];
    if (fcntl (py->fd, F_SETFL, O_NONBLOCK) < 0
        || !(py->w = flux_fd_watcher_create (r,
                                             py->fd,
                                             FLUX_POLLIN,
                                             python_cb,
                                             py))
        || (py->pid = spawn_program (argv, NULL, fds[1], -1, error)) < 0)
        goto error;
    close (fds[1]);
    flux_watcher_start (py->w);
    return py;
error:
    if (fds[1] >= 0)
        ERRNO_SAFE (close (fds[1]));
    python_destroy (py);
    return NULL;
}

void python_destroy (struct python *py)
{
    if (py) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (py->w);
        if (py->fd >= 0)
            close (py->fd);
        if (py->pid > 0)
            (void)waitpid (py->pid, NULL, 0);
        free (py->loader);
        free (py);
    }
}

static int send_packet (struct python *py, const char *buf, int len)
{
    return len > 0 && send (py->fd, buf, len, MSG_NOSIGNAL) == len ? 0 : -1;
}

int python_run (struct python *py,
                const char *id,
                const char *uri,
                const char *path)
{
    char *buf;
    int len = asprintf (&buf, "run %s %s %s", id, uri, path);
    int rc = send_packet (py, buf, len);

    if (len > 0)
        ERRNO_SAFE (free (buf));
    return rc;
}

void python_kill (struct python *py, const char *id)
{
    char buf[80];

    (void)send_packet (py, buf, snprintf (buf, sizeof (buf), "kill %s", id));
}

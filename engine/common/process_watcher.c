/* SPDX-License-Identifier: LGPL-3.0-only */
/* process_watcher.c - see process_watcher.h.
 */
#include <errno.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "process_watcher.h"

#define POLL_INTERVAL 0.01

flux_watcher_t *process_watcher_create (flux_reactor_t *r,
                                        pid_t pid,
                                        flux_watcher_f cb,
                                        void *arg)
{
    flux_watcher_t *w;
    int fd;

    if ((fd = pidfd_open (pid, 0)) >= 0)
        w = flux_fd_watcher_create (r, fd, FLUX_POLLIN, cb, arg);
    else // no such system call under some sandboxes and valgrind
        w = flux_timer_watcher_create (r, POLL_INTERVAL, POLL_INTERVAL, cb, arg);
    if (!w && fd >= 0)
        close (fd);
    flux_watcher_start (w);
    return w;
}

void process_watcher_destroy (flux_watcher_t *w)
{
    if (w) {
        ERRNO_SAFE_BLOCK;
        int fd = flux_fd_watcher_get_fd (w);
        flux_watcher_destroy (w);
        if (fd >= 0)
            close (fd);
    }
}

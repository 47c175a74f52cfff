/* SPDX-License-Identifier: LGPL-3.0-only */
/* process_watcher.h - to be told when a child process ends.
 *
 * Not by SIGCHLD, so that any thread with a reactor can have children.
 */
#ifndef SOLO_COMMON_PROCESS_WATCHER_H
#define SOLO_COMMON_PROCESS_WATCHER_H

#include <sys/types.h>
#include <flux/core.h>

/* A watcher, started, whose callback asks waitpid(2) with WNOHANG whether the
 * process has ended: it may be called before that.
 */
flux_watcher_t *process_watcher_create (flux_reactor_t *r,
                                        pid_t pid,
                                        flux_watcher_f cb,
                                        void *arg);
void process_watcher_destroy (flux_watcher_t *w);

#endif // !SOLO_COMMON_PROCESS_WATCHER_H

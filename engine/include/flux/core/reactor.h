/* SPDX-License-Identifier: LGPL-3.0-only */
/* reactor.h - the event loop and its watchers. */
#ifndef SOLO_FLUX_REACTOR_H
#define SOLO_FLUX_REACTOR_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { FLUX_REACTOR_NOWAIT = 1, FLUX_REACTOR_ONCE = 2 };

/* Events of fd and handle watchers; flux_pollevents(3) uses them too. */
enum { FLUX_POLLIN = 1, FLUX_POLLOUT = 2, FLUX_POLLERR = 4 };

flux_reactor_t *flux_reactor_create (int flags);
void flux_reactor_incref (flux_reactor_t *r);
void flux_reactor_decref (flux_reactor_t *r);
void flux_reactor_destroy (flux_reactor_t *r);

int flux_reactor_run (flux_reactor_t *r, int flags);
void flux_reactor_stop (flux_reactor_t *r);
void flux_reactor_stop_error (flux_reactor_t *r);

double flux_reactor_now (flux_reactor_t *r);
void flux_reactor_now_update (flux_reactor_t *r);
double flux_reactor_time (void);

typedef void (*flux_watcher_f) (flux_reactor_t *r, flux_watcher_t *w,
                                int revents, void *arg);

void flux_watcher_start (flux_watcher_t *w);
void flux_watcher_stop (flux_watcher_t *w);
void flux_watcher_ref (flux_watcher_t *w);
void flux_watcher_unref (flux_watcher_t *w);
bool flux_watcher_is_active (flux_watcher_t *w);
void flux_watcher_destroy (flux_watcher_t *w);

flux_watcher_t *flux_handle_watcher_create (flux_reactor_t *r, flux_t *h,
                                            int events,
                                            flux_watcher_f cb, void *arg);

flux_watcher_t *flux_fd_watcher_create (flux_reactor_t *r, int fd, int events,
                                        flux_watcher_f cb, void *arg);
int flux_fd_watcher_get_fd (flux_watcher_t *w);

flux_watcher_t *flux_timer_watcher_create (flux_reactor_t *r,
                                           double after, double repeat,
                                           flux_watcher_f cb, void *arg);
void flux_timer_watcher_reset (flux_watcher_t *w, double after, double repeat);
void flux_timer_watcher_again (flux_watcher_t *w);

flux_watcher_t *flux_prepare_watcher_create (flux_reactor_t *r,
                                             flux_watcher_f cb, void *arg);
flux_watcher_t *flux_check_watcher_create (flux_reactor_t *r,
                                           flux_watcher_f cb, void *arg);
flux_watcher_t *flux_idle_watcher_create (flux_reactor_t *r,
                                          flux_watcher_f cb, void *arg);

flux_watcher_t *flux_signal_watcher_create (flux_reactor_t *r, int signum,
                                            flux_watcher_f cb, void *arg);
int flux_signal_watcher_get_signum (flux_watcher_t *w);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: LGPL-3.0-only */
/* reactor_private.h - watchers made of other watchers. */
#ifndef SOLO_REACTOR_PRIVATE_H
#define SOLO_REACTOR_PRIVATE_H

#include <flux/core.h>

struct watcher_ops {
    void (*start) (void *data);
    void (*stop) (void *data);
    bool (*is_active) (void *data);
    void (*set_unreferenced) (void *data, bool unreferenced);
    void (*destroy) (void *data);
};

flux_watcher_t *watcher_create_custom (flux_reactor_t *r,
                                       const struct watcher_ops *ops,
                                       void *data,
                                       flux_watcher_f cb, void *arg);

/* A watcher that runs when told to: watcher_feed() has its callback called
 * once, from the loop, before the loop sleeps; stop takes that back.
 */
flux_watcher_t *watcher_create_feed (flux_reactor_t *r,
                                     flux_watcher_f cb, void *arg);
void watcher_feed (flux_watcher_t *w);

/* Changes when the loop is told to stop, or a watcher is fed: whoever does
 * many things in one callback then returns to the loop.
 */
unsigned int reactor_serial (flux_reactor_t *r);

/* A reactor for a few fds, which costs none itself.  The kernel puts a handle's
 * fd into no more than 500 epoll sets: not enough for futures that are waited
 * for one after the other.
 */
flux_reactor_t *reactor_create_small (void);

void watcher_call (flux_watcher_t *w, int revents);

#endif

/* SPDX-License-Identifier: LGPL-3.0-only */
/* reactor.c - the reactor and its watchers, on libev.
 *
 * libev keeps the loop running while any watcher is active; an unreferenced
 * watcher is one for which that count is taken back each time it starts.
 */

#include <ev.h>

#include "libutil/errno_safe.h"
#include "reactor_private.h"

struct flux_reactor {
    struct ev_loop *loop;
    int refcount;
    bool failed;
    unsigned int serial;
};

/* Reactor */

static flux_reactor_t *create (unsigned int ev_flags)
{
    flux_reactor_t *r;

    if (!(r = calloc (1, sizeof (*r))))
        return NULL;
    r->refcount = 1;
    if (!(r->loop = ev_loop_new (ev_flags | EVFLAG_NOSIGMASK))) {
        free (r);
        errno = ENOMEM;
        return NULL;
    }
    return r;
}

flux_reactor_t *flux_reactor_create (int flags)
{
    if (flags != 0) {
        errno = EINVAL;
        return NULL;
    }
    return create (EVFLAG_AUTO);
}

flux_reactor_t *reactor_create_small (void)
{
    return create (EVBACKEND_POLL);
}

void flux_reactor_incref (flux_reactor_t *r)
{
    if (r)
        r->refcount++;
}

void flux_reactor_decref (flux_reactor_t *r)
{
    if (r && --r->refcount == 0) {
        ERRNO_SAFE_BLOCK;
        ev_loop_destroy (r->loop);
        free (r);
    }
}

void flux_reactor_destroy (flux_reactor_t *r)
{
    flux_reactor_decref (r);
}

int flux_reactor_run (flux_reactor_t *r, int flags)
{
    int active;

    if (!r || (flags & ~(FLUX_REACTOR_NOWAIT | FLUX_REACTOR_ONCE))) {
        errno = EINVAL;
        return -1;
    }
    r->failed = false;
    // what was fed is the one event: libev would run that, and wait for more
    if ((flags & FLUX_REACTOR_ONCE) && ev_pending_count (r->loop) > 0)
        flags |= FLUX_REACTOR_NOWAIT;
    active = ev_run (r->loop,
                     (flags & FLUX_REACTOR_NOWAIT ? EVRUN_NOWAIT : 0)
                     | (flags & FLUX_REACTOR_ONCE ? EVRUN_ONCE : 0));
    return r->failed ? -1 : active;
}

void flux_reactor_stop (flux_reactor_t *r)
{
    r->failed = false;
    r->serial++;
    ev_break (r->loop, EVBREAK_ALL);
}

void flux_reactor_stop_error (flux_reactor_t *r)
{
    r->failed = true;
    r->serial++;
    ev_break (r->loop, EVBREAK_ALL);
}

unsigned int reactor_serial (flux_reactor_t *r)
{
    return r->serial;
}

double flux_reactor_now (flux_reactor_t *r)
{
    return ev_now (r->loop);
}

void flux_reactor_now_update (flux_reactor_t *r)
{
    ev_now_update (r->loop);
}

double flux_reactor_time (void)
{
    return ev_time ();
}

/* Watchers */

enum kind {
    FD,
    TIMER,
    PREPARE,
    CHECK,
    IDLE,
    SIGNAL,
    FEED,
    CUSTOM,
};

/* ev is the libev part; all of them begin with the fields of 'any'. */
struct flux_watcher {
    union {
        ev_watcher any;
        ev_io io;
        ev_timer timer;
        ev_prepare prepare;
        ev_check check;
        ev_idle idle;
        ev_signal signal;
    } ev;
    enum kind kind;
    flux_reactor_t *r;
    flux_watcher_f cb;
    void *arg;
    bool unreferenced;
    const struct watcher_ops *ops;  // CUSTOM
    void *data;
};

static int events_from_ev (int revents)
{
    return (revents & EV_READ ? FLUX_POLLIN : 0)
           | (revents & EV_WRITE ? FLUX_POLLOUT : 0)
           | (revents & EV_ERROR ? FLUX_POLLERR : 0);
}

void watcher_call (flux_watcher_t *w, int revents)
{
    if (w->cb)
        w->cb (w->r, w, revents, w->arg);
}

static void watcher_cb (struct ev_loop *loop, ev_watcher *ev, int revents)
{
    flux_watcher_t *w = ev->data;

    // libev has stopped a one-shot by itself: settle our part of the count
    if (w->unreferenced && w->kind != FEED && !ev_is_active (&w->ev.any))
        ev_ref (loop);
    watcher_call (w, events_from_ev (revents));
}

static flux_watcher_t *watcher_create (flux_reactor_t *r, enum kind kind,
                                       flux_watcher_f cb, void *arg)
{
    flux_watcher_t *w;

    if (!r) {
        errno = EINVAL;
        return NULL;
    }
    if (!(w = calloc (1, sizeof (*w))))
        return NULL;
    w->kind = kind;
    w->r = r;
    w->cb = cb;
    w->arg = arg;
    ev_init (&w->ev.any, watcher_cb);
    w->ev.any.data = w;
    flux_reactor_incref (r);
    return w;
}

flux_watcher_t *watcher_create_custom (flux_reactor_t *r,
                                       const struct watcher_ops *ops,
                                       void *data,
                                       flux_watcher_f cb, void *arg)
{
    flux_watcher_t *w = watcher_create (r, CUSTOM, cb, arg);

    if (w) {
        w->ops = ops;
        w->data = data;
    }
    return w;
}

flux_watcher_t *watcher_create_feed (flux_reactor_t *r,
                                     flux_watcher_f cb, void *arg)
{
    return watcher_create (r, FEED, cb, arg);
}

void watcher_feed (flux_watcher_t *w)
{
    w->r->serial++;
    ev_feed_event (w->r->loop, &w->ev.any, EV_CUSTOM);
}

bool flux_watcher_is_active (flux_watcher_t *w)
{
    if (!w)
        return false;
    return w->kind == CUSTOM ? w->ops->is_active (w->data)
                             : ev_is_active (&w->ev.any);
}

void flux_watcher_start (flux_watcher_t *w)
{
    struct ev_loop *loop;

    if (!w || flux_watcher_is_active (w))
        return;
    loop = w->r->loop;
    switch (w->kind) {
    case FD: ev_io_start (loop, &w->ev.io); break;
    case TIMER: ev_timer_start (loop, &w->ev.timer); break;
    case PREPARE: ev_prepare_start (loop, &w->ev.prepare); break;
    case CHECK: ev_check_start (loop, &w->ev.check); break;
    case IDLE: ev_idle_start (loop, &w->ev.idle); break;
    case SIGNAL: ev_signal_start (loop, &w->ev.signal); break;
    case FEED: return;
    case CUSTOM: w->ops->start (w->data); return;
    }
    if (w->unreferenced)
        ev_unref (loop);
}

/* Also drops a pending event, so not only for active watchers. */
void flux_watcher_stop (flux_watcher_t *w)
{
    struct ev_loop *loop;

    if (!w)
        return;
    loop = w->r->loop;
    if (w->kind != CUSTOM && w->unreferenced && ev_is_active (&w->ev.any))
        ev_ref (loop);
    switch (w->kind) {
    case FD: ev_io_stop (loop, &w->ev.io); break;
    case TIMER: ev_timer_stop (loop, &w->ev.timer); break;
    case PREPARE: ev_prepare_stop (loop, &w->ev.prepare); break;
    case CHECK: ev_check_stop (loop, &w->ev.check); break;
    case IDLE: ev_idle_stop (loop, &w->ev.idle); break;
    case SIGNAL: ev_signal_stop (loop, &w->ev.signal); break;
    case FEED: ev_clear_pending (loop, &w->ev.any); break;
    case CUSTOM: w->ops->stop (w->data); break;
    }
}

static void set_unreferenced (flux_watcher_t *w, bool unreferenced)
{
    if (!w || w->unreferenced == unreferenced)
        return;
    w->unreferenced = unreferenced;
    if (w->kind == CUSTOM)
        w->ops->set_unreferenced (w->data, unreferenced);
    else if (ev_is_active (&w->ev.any)) {
        if (unreferenced)
            ev_unref (w->r->loop);
        else
            ev_ref (w->r->loop);
    }
}

void flux_watcher_ref (flux_watcher_t *w)
{
    set_unreferenced (w, false);
}

void flux_watcher_unref (flux_watcher_t *w)
{
    set_unreferenced (w, true);
}

void flux_watcher_destroy (flux_watcher_t *w)
{
    if (w) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_stop (w);
        if (w->kind == CUSTOM)
            w->ops->destroy (w->data);
        flux_reactor_decref (w->r);
        free (w);
    }
}

static bool is_kind (flux_watcher_t *w, enum kind kind)
{
    if (w && w->kind == kind)
        return true;
    errno = EINVAL;
    return false;
}

/* fd */

flux_watcher_t *flux_fd_watcher_create (flux_reactor_t *r, int fd, int events,
                                        flux_watcher_f cb, void *arg)
{
    flux_watcher_t *w = watcher_create (r, FD, cb, arg);

    if (w)
        ev_io_set (&w->ev.io, fd, (events & FLUX_POLLIN ? EV_READ : 0)
                                  | (events & FLUX_POLLOUT ? EV_WRITE : 0));
    return w;
}

int flux_fd_watcher_get_fd (flux_watcher_t *w)
{
    return is_kind (w, FD) ? w->ev.io.fd : -1;
}

/* Timer */

flux_watcher_t *flux_timer_watcher_create (flux_reactor_t *r,
                                           double after, double repeat,
                                           flux_watcher_f cb, void *arg)
{
    flux_watcher_t *w;

    if (after < 0. || repeat < 0.) {
        errno = EINVAL;
        return NULL;
    }
    if ((w = watcher_create (r, TIMER, cb, arg)))
        ev_timer_set (&w->ev.timer, after, repeat);
    return w;
}

void flux_timer_watcher_reset (flux_watcher_t *w, double after, double repeat)
{
    if (is_kind (w, TIMER))
        ev_timer_set (&w->ev.timer, after, repeat);
}

/* Start, restart, or, without a repeat, stop. */
void flux_timer_watcher_again (flux_watcher_t *w)
{
    if (!is_kind (w, TIMER))
        return;
    flux_watcher_stop (w);
    if (w->ev.timer.repeat > 0.) {
        ev_timer_again (w->r->loop, &w->ev.timer);
        if (w->unreferenced)
            ev_unref (w->r->loop);
    }
}

/* Periodic */

/* Prepare, check, idle */

flux_watcher_t *flux_prepare_watcher_create (flux_reactor_t *r,
                                             flux_watcher_f cb, void *arg)
{
    return watcher_create (r, PREPARE, cb, arg);
}

flux_watcher_t *flux_check_watcher_create (flux_reactor_t *r,
                                           flux_watcher_f cb, void *arg)
{
    return watcher_create (r, CHECK, cb, arg);
}

flux_watcher_t *flux_idle_watcher_create (flux_reactor_t *r,
                                          flux_watcher_f cb, void *arg)
{
    return watcher_create (r, IDLE, cb, arg);
}

/* Signal */

flux_watcher_t *flux_signal_watcher_create (flux_reactor_t *r, int signum,
                                            flux_watcher_f cb, void *arg)
{
    flux_watcher_t *w = watcher_create (r, SIGNAL, cb, arg);

    if (w)
        ev_signal_set (&w->ev.signal, signum);
    return w;
}

int flux_signal_watcher_get_signum (flux_watcher_t *w)
{
    return is_kind (w, SIGNAL) ? w->ev.signal.signum : -1;
}

/* Stat.  The path must live as long as the watcher. */

/* SPDX-License-Identifier: LGPL-3.0-only */
/* watcher_handle.c - watcher for a handle: calls back while flux_pollevents(3)
 * has an event that is wanted.  A message may wait in memory where no file
 * descriptor shows it, so each turn of the loop asks before it would sleep.
 */

#include "libutil/errno_safe.h"
#include "reactor_private.h"

struct handle_watcher {
    flux_watcher_t *w;
    flux_t *h;
    int events;
    flux_watcher_t *fd;         // wakes the loop
    flux_watcher_t *prepare;    // before sleep: anything there?
    flux_watcher_t *idle;       // if so, do not sleep
    flux_watcher_t *check;      // after sleep: call back
};

static int pending (struct handle_watcher *hw)
{
    int events = flux_pollevents (hw->h);

    return (events < 0 ? FLUX_POLLERR : events) & (hw->events | FLUX_POLLERR);
}

static void prepare_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                        void *arg)
{
    struct handle_watcher *hw = arg;

    if (pending (hw))
        flux_watcher_start (hw->idle);
}

static void check_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    struct handle_watcher *hw = arg;
    int events;

    flux_watcher_stop (hw->idle);
    if ((events = pending (hw)))
        watcher_call (hw->w, events);
}

static void fd_cb (flux_reactor_t *r, flux_watcher_t *w, int revents, void *arg)
{
}

static void start (void *data)
{
    struct handle_watcher *hw = data;

    flux_watcher_start (hw->fd);
    flux_watcher_start (hw->prepare);
    flux_watcher_start (hw->check);
}

static void stop (void *data)
{
    struct handle_watcher *hw = data;

    flux_watcher_stop (hw->fd);
    flux_watcher_stop (hw->prepare);
    flux_watcher_stop (hw->check);
    flux_watcher_stop (hw->idle);
}

static bool is_active (void *data)
{
    struct handle_watcher *hw = data;
    return flux_watcher_is_active (hw->prepare);
}

static void set_unreferenced (void *data, bool unreferenced)
{
    struct handle_watcher *hw = data;
    void (*set) (flux_watcher_t *) = unreferenced ? flux_watcher_unref
                                                  : flux_watcher_ref;

    set (hw->fd);
    set (hw->prepare);
    set (hw->check);
    set (hw->idle);
}

static void destroy (void *data)
{
    struct handle_watcher *hw = data;

    flux_watcher_destroy (hw->fd);
    flux_watcher_destroy (hw->prepare);
    flux_watcher_destroy (hw->check);
    flux_watcher_destroy (hw->idle);
    free (hw);
}

static const struct watcher_ops ops = {
    .start = start,
    .stop = stop,
    .is_active = is_active,
    .set_unreferenced = set_unreferenced,
    .destroy = destroy,
};

flux_watcher_t *flux_handle_watcher_create (flux_reactor_t *r, flux_t *h,
                                            int events,
                                            flux_watcher_f cb, void *arg)
{
    struct handle_watcher *hw;
    int fd;

    if (!r || !h) {
        errno = EINVAL;
        return NULL;
    }
    if ((fd = flux_pollfd (h)) < 0 || !(hw = calloc (1, sizeof (*hw))))
        return NULL;
    hw->h = h;
    hw->events = events;
    if (!(hw->fd = flux_fd_watcher_create (r, fd, FLUX_POLLIN, fd_cb, NULL))
        || !(hw->prepare = flux_prepare_watcher_create (r, prepare_cb, hw))
        || !(hw->idle = flux_idle_watcher_create (r, NULL, NULL))
        || !(hw->check = flux_check_watcher_create (r, check_cb, hw))
        || !(hw->w = watcher_create_custom (r, &ops, hw, cb, arg))) {
        ERRNO_SAFE (destroy (hw));
        return NULL;
    }
    return hw->w;
}

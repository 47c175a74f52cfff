/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See timer.h. libev forbids setting a running timer.
 */

#include "base/timer.h"

flux_watcher_t *timer_make (flux_t *h, flux_watcher_f cb, void *arg)
{
    return flux_timer_watcher_create (flux_get_reactor (h), 0., 0., cb, arg);
}

flux_watcher_t *timer_every (flux_t *h, double interval, flux_watcher_f cb,
                             void *arg)
{
    flux_watcher_t *w = flux_timer_watcher_create (flux_get_reactor (h), interval,
                                                   interval, cb, arg);

    flux_watcher_start (w);
    return w;
}

void timer_start (flux_watcher_t *w, double after)
{
    flux_watcher_stop (w);
    flux_timer_watcher_reset (w, after, 0.);
    flux_watcher_start (w);
}

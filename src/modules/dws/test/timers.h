/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Timers that run out when the test says so. To be linked with
 * --wrap=flux_timer_watcher_create and --wrap=flux_timer_watcher_reset. What is
 * due at once is left to the reactor.
 */

#ifndef DWS_TEST_TIMERS_H
#define DWS_TEST_TIMERS_H

#include <flux/core.h>

#include "libdws/test/util.h"

#define TIMERS_MAX 8
#define TIMER_NEVER 1E6

struct timer {
    flux_watcher_t *w;
    flux_watcher_f cb;
    void *arg;
    double after;               // what it was last set to (s)
    bool repeats;
};

static struct timer timers[TIMERS_MAX];
static int timers_count;

flux_watcher_t *__real_flux_timer_watcher_create (flux_reactor_t *r,
                                                  double after, double repeat,
                                                  flux_watcher_f cb,
                                                  void *arg);
void __real_flux_timer_watcher_reset (flux_watcher_t *w, double after,
                                      double repeat);

flux_watcher_t *__wrap_flux_timer_watcher_create (flux_reactor_t *r,
                                                  double after, double repeat,
                                                  flux_watcher_f cb,
                                                  void *arg)
{
    struct timer *timer = &timers[timers_count++];

    assert_true (timers_count <= TIMERS_MAX);
    timer->w = __real_flux_timer_watcher_create (r, after, repeat, cb, arg);
    timer->cb = cb;
    timer->arg = arg;
    timer->after = after;
    timer->repeats = repeat > 0.;
    return timer->w;
}

static struct timer *timer_find (flux_watcher_t *w)
{
    for (int i = 0; i < timers_count; i++) {
        if (timers[i].w == w)
            return &timers[i];
    }
    fail_msg ("there is no such timer");
    return NULL;
}

/* The timer whose callback has this argument.
 */
static inline flux_watcher_t *timer_of (void *arg)
{
    for (int i = 0; i < timers_count; i++) {
        if (timers[i].arg == arg)
            return timers[i].w;
    }
    fail_msg ("there is no such timer");
    return NULL;
}

void __wrap_flux_timer_watcher_reset (flux_watcher_t *w, double after,
                                      double repeat)
{
    assert_false (flux_watcher_is_active (w));  // libev does not allow it
    timer_find (w)->after = after;
    __real_flux_timer_watcher_reset (w, after > 0. ? TIMER_NEVER : 0., repeat);
}

/* It was set to 'after', and runs out.
 */
static inline void timer_fire (flux_watcher_t *w, double after)
{
    struct timer *timer = timer_find (w);

    assert_true (flux_watcher_is_active (w));
    assert_true (timer->after == after);
    if (!timer->repeats)
        flux_watcher_stop (w);
    timer->cb (NULL, w, 0, timer->arg);
}

#endif /* !DWS_TEST_TIMERS_H */

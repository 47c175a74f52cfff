/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See retry.h.
 */

#include <stdlib.h>

#include "libutil/errno_safe.h"
#include "base/retry.h"
#include "base/timer.h"

struct retry {
    flux_watcher_t *timer;
    double delay;               // the next one
    double min;
    double max;
    retry_f cb;
    void *arg;
};

static void retry_timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                            void *arg)
{
    struct retry *retry = arg;

    retry->cb (retry->arg);
}

struct retry *retry_create (flux_t *h, double min, double max,
                            retry_f cb, void *arg)
{
    struct retry *retry;

    if (!(retry = calloc (1, sizeof (*retry))))
        return NULL;
    retry->delay = min;
    retry->min = min;
    retry->max = max;
    retry->cb = cb;
    retry->arg = arg;
    if (!(retry->timer = timer_make (h, retry_timer_cb, retry))) {
        retry_destroy (retry);
        return NULL;
    }
    return retry;
}

void retry_destroy (struct retry *retry)
{
    if (retry) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (retry->timer);
        free (retry);
    }
}

void retry_later (struct retry *retry)
{
    timer_start (retry->timer, retry->delay);
    retry->delay *= 2.;
    if (retry->delay > retry->max)
        retry->delay = retry->max;
}

void retry_after (struct retry *retry, double after)
{
    timer_start (retry->timer, after);
}

void retry_stop (struct retry *retry)
{
    flux_watcher_stop (retry->timer);
}

void retry_reset (struct retry *retry)
{
    retry->delay = retry->min;
}

bool retry_is_first (const struct retry *retry)
{
    return retry->delay <= retry->min;
}

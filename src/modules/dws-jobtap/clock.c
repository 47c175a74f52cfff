/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See clock.h.
 */

#include <errno.h>
#include <stdlib.h>

#include "libdws/util/timeline.h"
#include "libutil/clocks.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"

#include "clock.h"

struct jobtap_clock {
    struct jobtap *ctx;
    struct dws_timeline line;
    flux_future_t *f;           // the record in the KVS, NULL: it has been read
    void (*known)(struct jobtap *ctx);
};

/* ENOENT is no error: dws.so writes the record when it is loaded for the first time.
 */
static void record_cb (flux_future_t *f, void *arg)
{
    struct jobtap_clock *clock = arg;
    char boot[BOOT_NAME_SIZE];
    json_t *record;

    if (flux_kvs_lookup_get_unpack (f, "o", &record) == 0)
        (void)dws_timeline_learn (&clock->line, record, boot_name (boot));
    else if (errno != ENOENT)
        safe_log_error (clock->ctx->h, "dws: " DWS_KEY_CLOCK);
    flux_future_destroy (f);
    clock->f = NULL;
    clock->known (clock->ctx);
}

struct jobtap_clock *jobtap_clock_create (struct jobtap *ctx,
                                          void (*known)(struct jobtap *ctx))
{
    struct jobtap_clock *clock;

    if (!(clock = calloc (1, sizeof (*clock))))
        return NULL;
    clock->ctx = ctx;
    clock->known = known;
    dws_timeline_init (&clock->line, clock_seconds (CLOCK_REALTIME),
                       clock_seconds (CLOCK_MONOTONIC));
    if (!(clock->f = flux_kvs_lookup (ctx->h, NULL, 0, DWS_KEY_CLOCK))
        || flux_future_then (clock->f, -1., record_cb, clock) < 0) {
        jobtap_clock_destroy (clock);
        return NULL;
    }
    return clock;
}

void jobtap_clock_destroy (struct jobtap_clock *clock)
{
    if (clock) {
        ERRNO_SAFE_BLOCK;
        flux_future_destroy (clock->f);
        free (clock);
    }
}

double jobtap_clock_left (struct jobtap_clock *clock, double t, double limit)
{
    double left;

    (void)dws_timeline_look (&clock->line, clock_seconds (CLOCK_REALTIME),
                             clock_seconds (CLOCK_MONOTONIC));
    if (clock->f)
        return limit;
    left = dws_timeline_of (&clock->line, t) + limit - clock->line.now;
    return left > 0. ? left : 0.;
}

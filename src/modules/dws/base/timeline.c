/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See timeline.h.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "libdws/util/timeline.h"
#include "libutil/clocks.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "base/calls.h"
#include "base/commits.h"
#include "base/timeline.h"

struct timeline {
    struct dws_ctx *ctx;
    struct dws_timeline line;
    char boot[BOOT_NAME_SIZE];
};

double monotonic_now (void)
{
    return clock_seconds (CLOCK_MONOTONIC);
}

static void keep_record (struct timeline *timeline)
{
    json_t *record = dws_timeline_record (&timeline->line, timeline->boot);

    (void)commits_save (timeline->ctx, DWS_KEY_CLOCK, record);
    json_decref (record);
}

static void tell_jump (struct timeline *timeline)
{
    const struct dws_timeline *line = &timeline->line;
    double seconds = line->jumps[line->count - 1].to
                     - line->jumps[line->count - 1].from;

    safe_log (timeline->ctx->h, LOG_WARNING, "the clock was set %.0f s %s: time "
              "limits of rabbit jobs go on as before", fabs (seconds),
              seconds > 0. ? "forward" : "back");
}

double timeline_now (struct timeline *timeline)
{
    if (dws_timeline_look (&timeline->line, clock_seconds (CLOCK_REALTIME),
                           monotonic_now ())) {
        tell_jump (timeline);
        keep_record (timeline);
        timeline->ctx->events->clock_set (timeline->ctx);
    }
    return timeline->line.now;
}

double timeline_of (struct timeline *timeline, double stamp)
{
    (void)timeline_now (timeline);
    return dws_timeline_of (&timeline->line, stamp);
}

double timeline_wall (struct timeline *timeline, double t)
{
    return dws_timeline_wall (&timeline->line, t);
}

double timeline_since (struct timeline *timeline, double t)
{
    return t > 0. ? t + timeline->line.offset : 0.;
}

static int read_record (struct timeline *timeline)
{
    json_t *record;

    if (commits_load (timeline->ctx->h, DWS_KEY_CLOCK, &record) < 0)
        return -1;
    if (dws_timeline_learn (&timeline->line, record, timeline->boot))
        tell_jump (timeline);
    keep_record (timeline);
    json_decref (record);
    return 0;
}

struct timeline *timeline_create (struct dws_ctx *ctx)
{
    struct timeline *timeline;

    if (!(timeline = calloc (1, sizeof (*timeline))))
        return NULL;
    timeline->ctx = ctx;
    (void)boot_name (timeline->boot);
    dws_timeline_init (&timeline->line, clock_seconds (CLOCK_REALTIME),
                       monotonic_now ());
    if (read_record (timeline) < 0) {
        timeline_destroy (timeline);
        return NULL;
    }
    return timeline;
}

void timeline_destroy (struct timeline *timeline)
{
    ERRNO_SAFE (free (timeline));
}

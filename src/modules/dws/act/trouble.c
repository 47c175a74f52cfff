/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See trouble.h.
 */

#include <stdlib.h>

#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "act/trouble.h"
#include "base/timer.h"

#define INTERVAL_MIN 60.
#define INTERVAL_MAX 3600.

/* Upper bound on jobs named with the same trouble in one interval.
 */
#define NAMED_MAX 5

struct trouble {
    struct troubles *owner;
    enum dws_action_kind kind;
    int code;
    uint64_t jobid;             // of the latest line
    unsigned int named;         // lines in this interval
    unsigned int more;          // failures that were not logged
    double interval;
    flux_watcher_t *timer;      // end of the interval
    struct trouble *next;
};

struct troubles {
    struct dws_ctx *ctx;
    struct trouble *head;
};

static void trouble_destroy (struct trouble *t)
{
    if (t) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (t->timer);
        free (t);
    }
}

static void drop_trouble (struct trouble *t)
{
    struct trouble **pp = &t->owner->head;

    while (*pp != t)
        pp = &(*pp)->next;
    *pp = t->next;
    trouble_destroy (t);
}

/* After an interval without a failure of this kind the trouble has ended: the
 * next failure is logged at once.
 */
static void trouble_timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                              void *arg)
{
    struct trouble *t = arg;

    if (t->more == 0) {
        drop_trouble (t);
        return;
    }
    safe_log (t->owner->ctx->h, LOG_ERR,
              "%s: %u more failures of this kind (%d) in %.0f seconds",
              dws_action_name (t->kind), t->more, t->code, t->interval);
    t->more = 0;
    t->named = 0;
    t->interval *= 2.;
    if (t->interval > INTERVAL_MAX)
        t->interval = INTERVAL_MAX;
    flux_timer_watcher_reset (w, t->interval, 0.);
    flux_watcher_start (w);
}

static struct trouble *add_trouble (struct troubles *troubles,
                                    enum dws_action_kind kind,
                                    int code)
{
    struct trouble *t;

    if (!(t = calloc (1, sizeof (*t))))
        return NULL;
    t->owner = troubles;
    t->kind = kind;
    t->code = code;
    t->interval = INTERVAL_MIN;
    if (!(t->timer = timer_make (troubles->ctx->h, trouble_timer_cb, t))) {
        trouble_destroy (t);
        return NULL;
    }
    timer_start (t->timer, t->interval);
    t->next = troubles->head;
    troubles->head = t;
    return t;
}

void trouble_log (struct job *job, enum dws_action_kind kind, int code,
                  const char *text)
{
    struct troubles *troubles = job->ctx->troubles;
    struct trouble *t = troubles->head;
    char label[JOB_LABEL_SIZE];

    while (t && (t->kind != kind || t->code != code))
        t = t->next;
    if (!t)
        t = add_trouble (troubles, kind, code);
    /* If memory runs out, log the line rather than lose it. */
    if (t) {
        if (t->named >= NAMED_MAX
            || (t->named > 0 && t->jobid == job->facts->id)) {
            t->more++;
            return;
        }
        t->named++;
        t->jobid = job->facts->id;
    }
    safe_log (job->ctx->h, LOG_ERR, "%s: %s: %s", job_label (job, label),
              dws_action_name (kind), text);
}

struct troubles *troubles_create (struct dws_ctx *ctx)
{
    struct troubles *troubles;

    if ((troubles = calloc (1, sizeof (*troubles))))
        troubles->ctx = ctx;
    return troubles;
}

void troubles_destroy (struct troubles *troubles)
{
    if (troubles) {
        ERRNO_SAFE_BLOCK;
        while (troubles->head)
            drop_trouble (troubles->head);
        free (troubles);
    }
}

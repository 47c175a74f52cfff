/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See errorlog.h.
 */

#include <stdlib.h>

#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "act/errorlog.h"
#include "base/timer.h"

#define INTERVAL_MIN 60.
#define INTERVAL_MAX 3600.

/* Upper bound on jobs named with the same failure in one interval.
 */
#define NAMED_MAX 5

struct entry {
    struct errorlog *owner;
    enum dws_action_kind kind;
    int code;
    uint64_t jobid;             // of the latest line
    unsigned int named;         // lines in this interval
    unsigned int more;          // failures that were not logged
    double interval;
    flux_watcher_t *timer;      // end of the interval
    struct entry *next;
};

struct errorlog {
    struct dws_ctx *ctx;
    struct entry *head;
};

static void entry_destroy (struct entry *t)
{
    if (t) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (t->timer);
        free (t);
    }
}

static void drop_entry (struct entry *t)
{
    struct entry **pp = &t->owner->head;

    while (*pp != t)
        pp = &(*pp)->next;
    *pp = t->next;
    entry_destroy (t);
}

/* After an interval without a failure of this kind the failures have ended: the
 * next failure is logged at once.
 */
static void entry_timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                              void *arg)
{
    struct entry *t = arg;

    if (t->more == 0) {
        drop_entry (t);
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

static struct entry *add_entry (struct errorlog *errorlog,
                                enum dws_action_kind kind,
                                int code)
{
    struct entry *t;

    if (!(t = calloc (1, sizeof (*t))))
        return NULL;
    t->owner = errorlog;
    t->kind = kind;
    t->code = code;
    t->interval = INTERVAL_MIN;
    if (!(t->timer = timer_make (errorlog->ctx->h, entry_timer_cb, t))) {
        entry_destroy (t);
        return NULL;
    }
    timer_start (t->timer, t->interval);
    t->next = errorlog->head;
    errorlog->head = t;
    return t;
}

void errorlog_add (struct job *job, enum dws_action_kind kind, int code,
                   const char *text)
{
    struct errorlog *errorlog = job->ctx->errorlog;
    struct entry *t = errorlog->head;
    char label[JOB_LABEL_SIZE];

    while (t && (t->kind != kind || t->code != code))
        t = t->next;
    if (!t)
        t = add_entry (errorlog, kind, code);
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

struct errorlog *errorlog_create (struct dws_ctx *ctx)
{
    struct errorlog *errorlog;

    if ((errorlog = calloc (1, sizeof (*errorlog))))
        errorlog->ctx = ctx;
    return errorlog;
}

void errorlog_destroy (struct errorlog *errorlog)
{
    if (errorlog) {
        ERRNO_SAFE_BLOCK;
        while (errorlog->head)
            drop_entry (errorlog->head);
        free (errorlog);
    }
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See writeback.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/tell/record.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "act/writeback.h"
#include "act/kvs.h"
#include "act/late.h"
#include "base/calls.h"
#include "base/timeline.h"
#include "base/timer.h"
#include "tell/annotate.h"

/* How long records are kept before they are written (s). A timer runs twice in that time
 * and writes those that are older than half of it.
 */
#define KEEP 10.
#define HALF_TIME (KEEP / 2.)

/* A job in the queue has more to write only when it gets its nodes. Write what there is
 * after this many timer runs if the job has none by then.
 */
#define LOOKS_QUEUED 11

/* Upper bound on jobs whose records are written per reactor turn: so many take a
 * millisecond or two.
 */
#define JOBS_PER_TURN 16

#define STATES (DWS_STATE_TEARDOWN + 1)

struct unwritten {
    struct job *job;
    double t;                           // of its begin, or of the last timer run
    int looks;                          // timer runs since
    char *timing[STATES];               // or NULL
    char *workflow;                     // the text of the record, or NULL
    json_t *memos;                      // or NULL
    struct unwritten *next;
    struct unwritten **at;              // the pointer to it in the list
};

struct writeback {
    struct dws_ctx *ctx;
    flux_watcher_t *timer;
    struct unwritten *head;             // oldest first
    struct unwritten **tail;
};

static void enter_list (struct writeback *writeback, struct unwritten *unwritten)
{
    unwritten->t = monotonic_now ();
    unwritten->next = NULL;
    unwritten->at = writeback->tail;
    *writeback->tail = unwritten;
    writeback->tail = &unwritten->next;
}

static void leave_list (struct writeback *writeback, struct unwritten *unwritten)
{
    if ((*unwritten->at = unwritten->next))
        unwritten->next->at = unwritten->at;
    else
        writeback->tail = unwritten->at;
}

static void flush_unwritten (struct job *job, void *data);

static struct unwritten *unwritten_get (struct job *job)
{
    struct writeback *writeback = job->ctx->writeback;
    struct unwritten *unwritten = job_slot (job, SLOT_WRITEBACK);

    if (unwritten)
        return unwritten;
    if (!(unwritten = calloc (1, sizeof (*unwritten))))
        return NULL;
    unwritten->job = job;
    if (!writeback->head)
        timer_start (writeback->timer, HALF_TIME);
    enter_list (writeback, unwritten);
    job_slot_put (job, SLOT_WRITEBACK, unwritten, flush_unwritten);
    return unwritten;
}

static void unwritten_destroy (struct unwritten *unwritten)
{
    ERRNO_SAFE_BLOCK;

    leave_list (unwritten->job->ctx->writeback, unwritten);
    for (int state = 0; state < STATES; state++)
        free (unwritten->timing[state]);
    free (unwritten->workflow);
    json_decref (unwritten->memos);
    free (unwritten);
}

/* Takes over 'text', which may be NULL with errno set.
 */
static int put (char **slot, char *text)
{
    if (!text)
        return -1;
    free (*slot);
    *slot = text;
    return 0;
}

int writeback_timing (struct job *job, enum dws_state state, const char *elapsed)
{
    struct unwritten *unwritten = unwritten_get (job);

    return unwritten ? put (&unwritten->timing[state], strdup (elapsed)) : -1;
}

int writeback_workflow (struct job *job, const char *object)
{
    struct unwritten *unwritten = unwritten_get (job);

    return unwritten ? put (&unwritten->workflow, dws_record_text (object)) : -1;
}

void writeback_memo (struct job *job, const char *key, const char *value)
{
    struct unwritten *unwritten = unwritten_get (job);

    if (!unwritten
        || (!unwritten->memos && !(unwritten->memos = json_object ()))
        || json_object_set_new (unwritten->memos, key, json_string (value)) < 0)
        safe_log (job->ctx->h, LOG_ERR, "memo: out of memory");
}

/* The job manager rejects memos of inactive jobs.
 */
static void tell_memos (struct unwritten *unwritten)
{
    if (unwritten->memos && !late_is (unwritten->job)) {
        annotate_memos (unwritten->job, unwritten->memos, false);
        unwritten->memos = NULL;
    }
}

void writeback_send_memos (struct job *job)
{
    struct unwritten *unwritten = job_slot (job, SLOT_WRITEBACK);

    if (unwritten)
        tell_memos (unwritten);
}

static int put_records (const struct unwritten *unwritten)
{
    int count = 0;

    for (int state = 0; state < STATES; state++) {
        if (!unwritten->timing[state])
            continue;
        if (kvs_put_timing (unwritten->job, state, unwritten->timing[state]) < 0)
            return -1;
        count++;
    }
    if (unwritten->workflow) {
        if (kvs_put_workflow (unwritten->job, unwritten->workflow) < 0)
            return -1;
        count++;
    }
    return count;
}

/* Write the records and memos, and destroy them. Returns the number of records, or -1.
 */
static int empty (struct unwritten *unwritten)
{
    int count;

    tell_memos (unwritten);
    count = put_records (unwritten);
    unwritten_destroy (unwritten);
    return count;
}

flux_future_t *writeback_commit (struct job *job)
{
    struct unwritten *unwritten = job_slot_take (job, SLOT_WRITEBACK);

    if (!unwritten) {
        errno = EINVAL;
        return NULL;
    }
    return empty (unwritten) < 0 ? NULL : kvs_wait (job);
}

static void flush_unwritten (struct job *job, void *data)
{
    static const char what[] = "records of a workflow";
    int count = empty (data);

    if (count > 0)
        (void)calls_log (job->ctx, kvs_wait (job), LOG_ERR, what);
    else if (count < 0)
        safe_log_error (job->ctx->h, what);
}

void writeback_flush (struct job *job)
{
    job_slot_clear (job, SLOT_WRITEBACK);
}

/* Put the records off, but not the memos, which users of queued jobs want to see.
 */
static bool put_off (struct writeback *writeback, struct unwritten *unwritten)
{
    if (unwritten->job->facts->phase != DWS_PHASE_PENDING
        || ++unwritten->looks >= LOOKS_QUEUED)
        return false;
    tell_memos (unwritten);
    leave_list (writeback, unwritten);
    enter_list (writeback, unwritten);
    return true;
}

static void writeback_timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                                void *arg)
{
    struct writeback *writeback = arg;
    double half = HALF_TIME;
    double due = monotonic_now () - half;

    for (int i = 0; i < JOBS_PER_TURN && writeback->head; i++) {
        if (writeback->head->t > due) {
            timer_start (writeback->timer, half);
            return;
        }
        if (!put_off (writeback, writeback->head))
            writeback_flush (writeback->head->job);
    }
    if (writeback->head)
        timer_start (writeback->timer, 0.);
}

struct writeback *writeback_create (struct dws_ctx *ctx)
{
    struct writeback *writeback;

    if (!(writeback = calloc (1, sizeof (*writeback))))
        return NULL;
    writeback->ctx = ctx;
    writeback->tail = &writeback->head;
    if (!(writeback->timer = timer_make (ctx->h, writeback_timer_cb, writeback))) {
        writeback_destroy (writeback);
        return NULL;
    }
    return writeback;
}

void writeback_destroy (struct writeback *writeback)
{
    if (writeback) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (writeback->timer);
        free (writeback);
    }
}

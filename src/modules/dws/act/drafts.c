/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See drafts.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/tell/record.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "act/drafts.h"
#include "act/kvs.h"
#include "act/late.h"
#include "base/calls.h"
#include "base/timeline.h"
#include "base/timer.h"
#include "tell/annotate.h"

/* How long a draft is kept before it is written (s). A timer runs twice in that time
 * and writes drafts that are older than half of it.
 */
#define KEEP 10.
#define HALF_TIME (KEEP / 2.)

/* A job in the queue adds to its draft only when it gets its nodes. Write the draft
 * after this many timer runs if the job has none by then.
 */
#define LOOKS_QUEUED 11

/* Upper bound on drafts written per reactor turn: so many take a millisecond or two.
 */
#define JOBS_PER_TURN 16

#define STATES (DWS_STATE_TEARDOWN + 1)

struct draft {
    struct job *job;
    double t;                           // of its begin, or of the last timer run
    int looks;                          // timer runs since
    char *timing[STATES];               // or NULL
    char *workflow;                     // the text of the record, or NULL
    json_t *memos;                      // or NULL
    struct draft *next;
    struct draft **at;                  // the pointer to it in the list
};

struct drafts {
    struct dws_ctx *ctx;
    flux_watcher_t *timer;
    struct draft *head;                 // oldest first
    struct draft **tail;
};

static void enter_list (struct drafts *drafts, struct draft *draft)
{
    draft->t = monotonic_now ();
    draft->next = NULL;
    draft->at = drafts->tail;
    *drafts->tail = draft;
    drafts->tail = &draft->next;
}

static void leave_list (struct drafts *drafts, struct draft *draft)
{
    if ((*draft->at = draft->next))
        draft->next->at = draft->at;
    else
        drafts->tail = draft->at;
}

static void send_draft (struct job *job, void *data);

static struct draft *draft_get (struct job *job)
{
    struct drafts *drafts = job->ctx->drafts;
    struct draft *draft = job_slot (job, SLOT_DRAFTS);

    if (draft)
        return draft;
    if (!(draft = calloc (1, sizeof (*draft))))
        return NULL;
    draft->job = job;
    if (!drafts->head)
        timer_start (drafts->timer, HALF_TIME);
    enter_list (drafts, draft);
    job_slot_put (job, SLOT_DRAFTS, draft, send_draft);
    return draft;
}

static void draft_destroy (struct draft *draft)
{
    ERRNO_SAFE_BLOCK;

    leave_list (draft->job->ctx->drafts, draft);
    for (int state = 0; state < STATES; state++)
        free (draft->timing[state]);
    free (draft->workflow);
    json_decref (draft->memos);
    free (draft);
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

int draft_timing (struct job *job, enum dws_state state, const char *elapsed)
{
    struct draft *draft = draft_get (job);

    return draft ? put (&draft->timing[state], strdup (elapsed)) : -1;
}

int draft_workflow (struct job *job, const char *object)
{
    struct draft *draft = draft_get (job);

    return draft ? put (&draft->workflow, dws_record_text (object)) : -1;
}

void draft_memo (struct job *job, const char *key, const char *value)
{
    struct draft *draft = draft_get (job);

    if (!draft
        || (!draft->memos && !(draft->memos = json_object ()))
        || json_object_set_new (draft->memos, key, json_string (value)) < 0)
        safe_log (job->ctx->h, LOG_ERR, "memo: out of memory");
}

/* The job manager rejects memos of inactive jobs.
 */
static void tell_memos (struct draft *draft)
{
    if (draft->memos && !late_is (draft->job)) {
        annotate_memos (draft->job, draft->memos, false);
        draft->memos = NULL;
    }
}

void draft_tell (struct job *job)
{
    struct draft *draft = job_slot (job, SLOT_DRAFTS);

    if (draft)
        tell_memos (draft);
}

static int put_records (const struct draft *draft)
{
    int count = 0;

    for (int state = 0; state < STATES; state++) {
        if (!draft->timing[state])
            continue;
        if (kvs_put_timing (draft->job, state, draft->timing[state]) < 0)
            return -1;
        count++;
    }
    if (draft->workflow) {
        if (kvs_put_workflow (draft->job, draft->workflow) < 0)
            return -1;
        count++;
    }
    return count;
}

/* Write and destroy the draft. Returns the number of records, or -1.
 */
static int empty (struct draft *draft)
{
    int count;

    tell_memos (draft);
    count = put_records (draft);
    draft_destroy (draft);
    return count;
}

flux_future_t *draft_write (struct job *job)
{
    struct draft *draft = job_slot_take (job, SLOT_DRAFTS);

    if (!draft) {
        errno = EINVAL;
        return NULL;
    }
    return empty (draft) < 0 ? NULL : kvs_wait (job);
}

static void send_draft (struct job *job, void *data)
{
    static const char what[] = "records of a workflow";
    int count = empty (data);

    if (count > 0)
        (void)calls_log (job->ctx, kvs_wait (job), LOG_ERR, what);
    else if (count < 0)
        safe_log_error (job->ctx->h, what);
}

void draft_send (struct job *job)
{
    job_slot_clear (job, SLOT_DRAFTS);
}

/* Put the draft off, but not its memos, which users of queued jobs want to see.
 */
static bool put_off (struct drafts *drafts, struct draft *draft)
{
    if (draft->job->facts->phase != DWS_PHASE_PENDING
        || ++draft->looks >= LOOKS_QUEUED)
        return false;
    tell_memos (draft);
    leave_list (drafts, draft);
    enter_list (drafts, draft);
    return true;
}

static void drafts_timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                             void *arg)
{
    struct drafts *drafts = arg;
    double half = HALF_TIME;
    double due = monotonic_now () - half;

    for (int i = 0; i < JOBS_PER_TURN && drafts->head; i++) {
        if (drafts->head->t > due) {
            timer_start (drafts->timer, half);
            return;
        }
        if (!put_off (drafts, drafts->head))
            draft_send (drafts->head->job);
    }
    if (drafts->head)
        timer_start (drafts->timer, 0.);
}

struct drafts *drafts_create (struct dws_ctx *ctx)
{
    struct drafts *drafts;

    if (!(drafts = calloc (1, sizeof (*drafts))))
        return NULL;
    drafts->ctx = ctx;
    drafts->tail = &drafts->head;
    if (!(drafts->timer = timer_make (ctx->h, drafts_timer_cb, drafts))) {
        drafts_destroy (drafts);
        return NULL;
    }
    return drafts;
}

void drafts_destroy (struct drafts *drafts)
{
    if (drafts) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (drafts->timer);
        free (drafts);
    }
}

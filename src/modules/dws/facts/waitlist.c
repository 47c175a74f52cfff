/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See waitlist.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/storage/colocation.h"
#include "libdws/util/jsonmake.h"
#include "libutil/errno_safe.h"
#include "facts/waitlist.h"

struct waiter {
    struct job *job;
    json_t *wants;              // {RABBIT: {KEY: true}}
    bool queued;
    bool room;                  // waits for room, and wants no keys
    bool called;                // to be reconciled
    struct waiter *next;
};

struct waitlist {
    struct waiter *list;          // in the order in which jobs are served
};

struct waitlist *waitlist_create (void)
{
    return calloc (1, sizeof (struct waitlist));
}

static void waiter_destroy (struct waiter *waiter)
{
    if (waiter) {
        ERRNO_SAFE_BLOCK;
        json_decref (waiter->wants);
        free (waiter);
    }
}

void waitlist_destroy (struct waitlist *waitlist)
{
    if (waitlist) {
        ERRNO_SAFE_BLOCK;
        while (waitlist->list) {
            struct waiter *waiter = waitlist->list;

            waitlist->list = waiter->next;
            (void)job_slot_take (waiter->job, SLOT_WAITLIST);
            waiter_destroy (waiter);
        }
        free (waitlist);
    }
}

/* The order: jobs with nodes by the time they got them, then jobs without; ties by id.
 */
static bool is_before (const struct job *a, const struct job *b)
{
    bool early_a = a->facts->phase == DWS_PHASE_DEPEND;
    bool early_b = b->facts->phase == DWS_PHASE_DEPEND;

    if (early_a != early_b)
        return early_b;
    if (a->t_alloc != b->t_alloc)
        return a->t_alloc < b->t_alloc;
    return a->facts->id < b->facts->id;
}

static json_t *make_wants (json_t *keys, json_t *rabbits)
{
    json_t *wants = json_object ();
    const char *rabbit;
    json_t *value;

    json_object_foreach (rabbits, rabbit, value)
        dws_json_set (&wants, rabbit, json_incref (keys));
    return wants;
}

static void leave (struct job *job, void *data);

static struct waiter *add_waiter (struct waitlist *waitlist, struct job *job)
{
    struct waiter **p = &waitlist->list;
    struct waiter *waiter;

    if (!(waiter = calloc (1, sizeof (*waiter))))
        return NULL;
    waiter->job = job;
    while (*p && is_before ((*p)->job, job))
        p = &(*p)->next;
    waiter->next = *p;
    *p = waiter;
    job_slot_put (job, SLOT_WAITLIST, waiter, leave);
    return waiter;
}

/* Takes over 'wants'.
 */
static int wait_for (struct waitlist *waitlist, struct job *job, json_t *wants,
                     bool queued, bool room, const char *text)
{
    struct waiter *waiter = job_slot (job, SLOT_WAITLIST);
    char *cpy;
    bool passed;

    if (!wants || !(cpy = strdup (text))) {
        json_decref (wants);
        errno = ENOMEM;
        return -1;
    }
    if (!waiter && !(waiter = add_waiter (waitlist, job))) {
        json_decref (wants);
        free (cpy);
        errno = ENOMEM;
        return -1;
    }
    free (job->facts->awaits);
    job->facts->awaits = cpy;
    passed = waiter->queued && !queued;
    json_decref (waiter->wants);
    waiter->wants = wants;
    waiter->queued = queued;
    waiter->room = room;
    if (passed)
        waitlist_wake (waitlist, wants);
    return 0;
}

int waitlist_wait (struct waitlist *waitlist, struct job *job, json_t *keys,
                json_t *rabbits, bool queued, const char *text)
{
    return wait_for (waitlist, job, make_wants (keys, rabbits), queued, false,
                     text);
}

int waitlist_wait_room (struct waitlist *waitlist, struct job *job, const char *text)
{
    return wait_for (waitlist, job, json_object (), false, true, text);
}

void waitlist_wake_room (struct waitlist *waitlist)
{
    struct waiter *waiter = waitlist->list;

    while (waiter && !waiter->room)
        waiter = waiter->next;
    if (waiter)
        jobs_changed (waiter->job);
}

/* Restart from the head after each job: jobs_changed() may remove this and other jobs.
 */
void waitlist_wake (struct waitlist *waitlist, json_t *rabbits)
{
    struct waiter *waiter;

    for (waiter = waitlist->list; waiter; waiter = waiter->next)
        waiter->called |= dws_colocation_meet (waiter->wants, rabbits);
    for (waiter = waitlist->list; waiter;) {
        if (!waiter->called) {
            waiter = waiter->next;
            continue;
        }
        waiter->called = false;
        jobs_changed (waiter->job);
        waiter = waitlist->list;
    }
}

static void leave (struct job *job, void *data)
{
    struct waitlist *waitlist = job->ctx->waitlist;
    struct waiter *waiter = data;
    struct waiter **p = &waitlist->list;

    while (*p != waiter)
        p = &(*p)->next;
    *p = waiter->next;
    free (job->facts->awaits);
    job->facts->awaits = NULL;
    waitlist_wake (waitlist, waiter->wants);
    if (waiter->room)
        waitlist_wake_room (waitlist);
    waiter_destroy (waiter);
}

void waitlist_leave (struct job *job)
{
    job_slot_clear (job, SLOT_WAITLIST);
}

/* By these facts dws_reconcile() asks for SERVERS.
 */
static bool may_wait (const struct job *job)
{
    bool early = job->facts->phase == DWS_PHASE_DEPEND
        && dws_is_data_first (job->facts, job->wf)
        && job->wf->state == DWS_STATE_PROPOSAL && job->wf->ready
        && !job->facts->no_room && !job->facts->waits;

    return job->wf
        && (job->facts->phase == DWS_PHASE_PROLOG || early)
        && !job->facts->exception
        && !job->facts->abandoned
        && !job->facts->refusal
        && !job->wf->deleting
        && !job->wf->servers_written
        && job->wf->desired == DWS_STATE_PROPOSAL;
}

void waitlist_see_job (struct waitlist *waitlist, struct job *job)
{
    if (job_slot (job, SLOT_WAITLIST) && !may_wait (job))
        waitlist_leave (job);
}

bool waitlist_room_before (const struct job *other, const struct job *job)
{
    const struct waiter *waiter = job_slot (other, SLOT_WAITLIST);

    return other != job && is_before (other, job) && may_wait (other)
        && other->claim.bytes.count == 0
        && (!waiter || waiter->room);
}

int waitlist_before (const struct waitlist *waitlist, const struct job *job,
                  json_t *rabbits, waitlist_f visit, void *arg)
{
    for (const struct waiter *waiter = waitlist->list; waiter; waiter = waiter->next) {
        if (waiter->job == job || !is_before (waiter->job, job))
            break;
        if (waiter->queued && dws_colocation_meet (waiter->wants, rabbits)
            && visit (waiter->job, waiter->wants, arg) < 0)
            return -1;
    }
    return 0;
}

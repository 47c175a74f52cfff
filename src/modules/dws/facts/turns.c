/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See turns.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "facts/turns.h"

struct turn {
    struct job *job;
    json_t *wants;              // {RABBIT: {KEY: true}}
    bool queued;
    bool room;                  // it waits for room, and wants nothing else
    bool called;                // it is to look again
    struct turn *next;
};

struct turns {
    struct turn *list;          // the first that is to get something is first
};

struct turns *turns_create (void)
{
    return calloc (1, sizeof (struct turns));
}

static void turn_destroy (struct turn *turn)
{
    if (turn) {
        ERRNO_SAFE_BLOCK;
        json_decref (turn->wants);
        free (turn);
    }
}

void turns_destroy (struct turns *turns)
{
    if (turns) {
        ERRNO_SAFE_BLOCK;
        while (turns->list) {
            struct turn *turn = turns->list;

            turns->list = turn->next;
            turn_destroy (turn);
        }
        free (turns);
    }
}

/* Jobs that were given their nodes at the same time go by their ids, and so do those
 * that have none yet, which come after all others.
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

    json_object_foreach (rabbits, rabbit, value) {
        if (!wants || json_object_set (wants, rabbit, keys) < 0) {
            json_decref (wants);
            wants = NULL;
            break;
        }
    }
    if (!wants)
        errno = ENOMEM;
    return wants;
}

static struct turn *add_turn (struct turns *turns, struct job *job)
{
    struct turn **p = &turns->list;
    struct turn *turn;

    if (!(turn = calloc (1, sizeof (*turn))))
        return NULL;
    turn->job = job;
    while (*p && is_before ((*p)->job, job))
        p = &(*p)->next;
    turn->next = *p;
    *p = turn;
    job->turn = turn;
    return turn;
}

/* Takes over 'wants'.
 */
static int wait_for (struct turns *turns, struct job *job, json_t *wants,
                     bool queued, bool room, const char *text)
{
    struct turn *turn = job->turn;
    char *cpy;
    bool passed;

    if (!wants || !(cpy = strdup (text))) {
        json_decref (wants);
        errno = ENOMEM;
        return -1;
    }
    if (!turn && !(turn = add_turn (turns, job))) {
        json_decref (wants);
        free (cpy);
        errno = ENOMEM;
        return -1;
    }
    free (job->facts->awaits);
    job->facts->awaits = cpy;
    passed = turn->queued && !queued;
    json_decref (turn->wants);
    turn->wants = wants;
    turn->queued = queued;
    turn->room = room;
    if (passed)
        turns_wake (turns, wants);
    return 0;
}

int turns_wait (struct turns *turns, struct job *job, json_t *keys,
                json_t *rabbits, bool queued, const char *text)
{
    return wait_for (turns, job, make_wants (keys, rabbits), queued, false,
                     text);
}

int turns_wait_room (struct turns *turns, struct job *job, const char *text)
{
    return wait_for (turns, job, json_object (), false, true, text);
}

void turns_wake_room (struct turns *turns)
{
    struct turn *turn = turns->list;

    while (turn && !turn->room)
        turn = turn->next;
    if (turn)
        jobs_changed (turn->job);
}

static bool shares (json_t *a, json_t *b)
{
    const char *rabbit;
    json_t *value;

    json_object_foreach (a, rabbit, value) {
        if (json_object_get (b, rabbit))
            return true;
    }
    return false;
}

/* A job that looks again may leave, and so may others: the list is begun anew after
 * each.
 */
void turns_wake (struct turns *turns, json_t *rabbits)
{
    struct turn *turn;

    for (turn = turns->list; turn; turn = turn->next)
        turn->called |= shares (turn->wants, rabbits);
    for (turn = turns->list; turn;) {
        if (!turn->called) {
            turn = turn->next;
            continue;
        }
        turn->called = false;
        jobs_changed (turn->job);
        turn = turns->list;
    }
}

void turns_leave (struct turns *turns, struct job *job)
{
    struct turn *turn = job->turn;
    struct turn **p = &turns->list;

    if (!turn)
        return;
    while (*p != turn)
        p = &(*p)->next;
    *p = turn->next;
    job->turn = NULL;
    free (job->facts->awaits);
    job->facts->awaits = NULL;
    turns_wake (turns, turn->wants);
    if (turn->room)
        turns_wake_room (turns);
    turn_destroy (turn);
}

/* By these facts dws_reconcile() asks for SERVERS.
 */
static bool may_wait (const struct job *job)
{
    bool early = job->facts->phase == DWS_PHASE_DEPEND
        && dws_is_first (job->facts, job->wf)
        && job->wf->state == DWS_STATE_PROPOSAL && job->wf->ready
        && !job->facts->crowded && !job->facts->waits;

    return job->wf
        && (job->facts->phase == DWS_PHASE_PROLOG || early)
        && !job->facts->exception
        && !job->facts->abandoned
        && !job->facts->refusal
        && !job->wf->deleting
        && !job->wf->servers_written
        && job->wf->desired == DWS_STATE_PROPOSAL;
}

void turns_see_job (struct turns *turns, struct job *job)
{
    if (job->turn && !may_wait (job))
        turns_leave (turns, job);
}

bool turns_room_before (const struct job *other, const struct job *job)
{
    return other != job && is_before (other, job) && may_wait (other)
        && json_object_size (other->claim.bytes) == 0
        && (!other->turn || other->turn->room);
}

int turns_before (const struct turns *turns, const struct job *job,
                  json_t *rabbits, turns_f visit, void *arg)
{
    for (const struct turn *turn = turns->list; turn; turn = turn->next) {
        if (turn->job == job || !is_before (turn->job, job))
            break;
        if (turn->queued && shares (turn->wants, rabbits)
            && visit (turn->job, turn->wants, arg) < 0)
            return -1;
    }
    return 0;
}

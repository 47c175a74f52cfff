/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The jobs that wait for room, if their storage may lie anywhere, or for a rabbit on which others keep something to themselves
 * (libdws/storage/colocation.h), in the order in which it is their turn.
 *
 * There is no deadlock: a job gets what is exclusive on all its rabbits at once,
 * when its storage is laid out, and has none of it while it waits. And nobody waits
 * for ever for jobs: who was given its nodes first is first, on each of its rabbits,
 * and waits only for those that have what it wants, which end.
 *
 * Nothing of this is kept: a job that finds no rabbit gets in again, and its place
 * follows from R.
 */

#ifndef DWS_WAITLIST_H
#define DWS_WAITLIST_H

#include <stdbool.h>
#include <jansson.h>

#include "facts/jobs.h"

struct waitlist;

struct waitlist *waitlist_create (void);
void waitlist_destroy (struct waitlist *waitlist);

/* The job waits for 'keys' ({KEY: true}) on 'rabbits', an object with their names,
 * and 'text' says so to its owner. If it is not 'queued' others pass it: it waits for
 * what may last for ever. A job that waits already keeps its place. Fails with ENOMEM.
 */
int waitlist_wait (struct waitlist *waitlist, struct job *job, json_t *keys,
                   json_t *rabbits, bool queued, const char *text);

/* The job waits for room on any rabbits, and 'text' says so to its owner. It wants
 * nothing that is exclusive, so it is before nobody in waitlist_before(). Jobs that are to
 * have their data before they have nodes wait here, too, behind all that have nodes.
 * Fails with ENOMEM.
 */
int waitlist_wait_room (struct waitlist *waitlist, struct job *job, const char *text);

/* Is 'other' to be given room before this job, if both want some? It is if it was given
 * its nodes before and has not been given storage yet, nor waits for something else:
 * who wants much is not passed by those who want less. That follows from the facts
 * about them, also when it has not been looked at yet.
 */
bool waitlist_room_before (const struct job *other, const struct job *job);

/* There may be more room: the first that waits for it looks again, and when it has
 * left the next one.
 */
void waitlist_wake_room (struct waitlist *waitlist);

/* The job does not wait any more: those behind it look again.
 */
void waitlist_leave (struct waitlist *waitlist, struct job *job);

/* Something about the job has changed: it may not wait any more.
 */
void waitlist_see_job (struct waitlist *waitlist, struct job *job);

/* Those that wait for one of 'rabbits' look again.
 */
void waitlist_wake (struct waitlist *waitlist, json_t *rabbits);

/* Call visit for each job that is before this one on one of 'rabbits', with what it
 * wants there: {RABBIT: {KEY: true}}. Stops, and returns -1, when that does.
 */
typedef int (*waitlist_f)(struct job *other, json_t *wants, void *arg);

int waitlist_before (const struct waitlist *waitlist, const struct job *job,
                     json_t *rabbits, waitlist_f visit, void *arg);

#endif /* !DWS_WAITLIST_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The waitlist: jobs that wait for room on any rabbit, or for a rabbit on which others
 * have an exclusive key (libdws/storage/colocation.h), in the order in which they get
 * it.
 *
 * Deadlock cannot occur: a job gets its exclusive keys on all its rabbits at once, when
 * its storage is laid out, and holds none while it waits. Nor does a job starve: the
 * job that got its nodes first is first on each of its rabbits, and waits only for jobs
 * that hold the keys, which end.
 *
 * The waitlist is not saved: after a restart a job that finds no rabbit enters it
 * again, and its place follows from R.
 */

#ifndef DWS_WAITLIST_H
#define DWS_WAITLIST_H

#include <stdbool.h>
#include <jansson.h>

#include "facts/jobs.h"

struct waitlist;

struct waitlist *waitlist_create (void);
void waitlist_destroy (struct waitlist *waitlist);

/* The job waits for 'keys' ({KEY: true}) on 'rabbits', an object with their names, and
 * 'text' says so to its owner. Other jobs pass a job that is not 'queued', because the
 * storage for which that waits may stay for ever. A job that is on the list already
 * keeps its place. Fails with ENOMEM.
 */
int waitlist_wait (struct waitlist *waitlist, struct job *job, json_t *keys,
                   json_t *rabbits, bool queued, const char *text);

/* The job waits for room on any rabbits, and 'text' says so to its owner. Such a job
 * wants no exclusive key, so waitlist_before() never visits it. Data-first jobs wait
 * here, too, behind all jobs that have nodes. Fails with ENOMEM.
 */
int waitlist_wait_room (struct waitlist *waitlist, struct job *job, const char *text);

/* Does 'other' get room before this job, if both want some? Yes, if it got its nodes
 * earlier, has no storage yet and waits for nothing else, so that small jobs do not
 * pass a large one. The answer follows from the facts alone, also before 'other' has
 * entered the list.
 */
bool waitlist_room_before (const struct job *other, const struct job *job);

/* Room may have become free: reconcile the first job that waits for it, and the next
 * one when that has left.
 */
void waitlist_wake_room (struct waitlist *waitlist);

/* Take the job off the list, and reconcile the jobs behind it.
 */
void waitlist_leave (struct job *job);

/* The job has changed: take it off the list if it need not wait any more.
 */
void waitlist_see_job (struct waitlist *waitlist, struct job *job);

/* Reconcile the jobs that wait for one of 'rabbits'.
 */
void waitlist_wake (struct waitlist *waitlist, json_t *rabbits);

/* Call visit for each job that is before this one on one of 'rabbits', with what it
 * wants there: {RABBIT: {KEY: true}}. Stops, and returns -1, when that does.
 */
typedef int (*waitlist_f)(struct job *other, json_t *wants, void *arg);

int waitlist_before (const struct waitlist *waitlist, const struct job *job,
                     json_t *rabbits, waitlist_f visit, void *arg);

#endif /* !DWS_WAITLIST_H */

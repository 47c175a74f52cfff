/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The scheduler must not give away the storage of jobs that give their nodes
 * back before it is torn down (rabbit.release_nodes), nor what no job has:
 * persistent storage and what other clients have. sched-rabbit is told here;
 * for Fluxion ssds are set down (libdws/health/fluxion.h): that is part of what it is
 * told of rabbits (health/health.h), and a job is let go when it has been.
 */

#ifndef DWS_HOLDS_H
#define DWS_HOLDS_H

#include <stdbool.h>
#include <flux/core.h>

#include "facts/jobs.h"

struct holds *holds_create (struct dws_ctx *ctx);
void holds_destroy (struct holds *holds);

/* True if the scheduler has to be told of this job's storage before the job is
 * let go.
 */
bool holds_needed (const struct job *job);

/* With Fluxion: may this job be let go? If not, it is from now on one that leaves, and
 * events->scheduler_told says when to look again.
 */
bool holds_ready (struct job *job);

/* The scheduler has been told all, has just come, or there is none: look at those that
 * leave.
 */
void holds_told (struct holds *holds);

/* Does this job have storage that Fluxion gives, or gives next, to others, if nobody
 * sets it down?
 */
bool holds_kept (const struct job *job);

/* What goes with all jobs that leave up to now, for scheduler_tell().
 */
unsigned int holds_version (const struct holds *holds);

/* Tell the scheduler of this job's storage. Returns the future of its answer,
 * or NULL with errno set.
 */
flux_future_t *holds_tell (struct job *job);

/* The job's storage was laid out. A file system over several rabbits may take
 * more of one than the scheduler gave the job there: tell it.
 */
void holds_claimed (struct job *job);

/* The job has ended without an epilog, and its storage is still there: tell the
 * scheduler, if it does not know.
 */
void holds_left (struct job *job);

/* The epilog timeout lets the job go, maybe while nobody can disable its rabbits: tell the
 * scheduler of its storage.
 */
void holds_abandoned (struct job *job);

/* The job's storage is free.
 */
void holds_end (struct job *job);

/* What no job has may have changed: tell the scheduler. Returns whether it has.
 */
bool holds_changed (struct holds *holds);

/* A scheduler was just loaded: tell it of the storage of all such jobs, now, or
 * when what they hold has become known.
 */
void holds_arrived (struct holds *holds);
void holds_learned (struct holds *holds);

#endif /* !DWS_HOLDS_H */

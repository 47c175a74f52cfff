/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The scheduler must not give away the storage of jobs that give their nodes
 * back before it is torn down (rabbit.release_nodes), nor what no job has:
 * persistent storage and what other clients have. sched-rabbit is told here;
 * for Fluxion ssds are set down (libdws/health/fluxion.h): that is part of what it is
 * told of rabbits (health/health.h), and a job is let go when it has been.
 */

#ifndef DWS_WITHHELD_H
#define DWS_WITHHELD_H

#include <stdbool.h>
#include <flux/core.h>

#include "facts/jobs.h"

struct withheld *withheld_create (struct dws_ctx *ctx);
void withheld_destroy (struct withheld *withheld);

/* True if the scheduler has to be told of this job's storage before the job is
 * let go.
 */
bool withheld_needed (const struct job *job);

/* With Fluxion: may this job be let go? If not, it is from now on one that leaves, and
 * events->scheduler_told says when to look again.
 */
bool withheld_ready (struct job *job);

/* The scheduler has been told all, has just come, or there is none: look at those that
 * leave.
 */
void withheld_told (struct withheld *withheld);

/* Does this job have storage that Fluxion gives, or gives next, to others, if nobody
 * sets it down?
 */
bool withheld_kept (const struct job *job);

/* What goes with all jobs that leave up to now, for scheduler_tell().
 */
unsigned int withheld_version (const struct withheld *withheld);

/* Tell the scheduler of this job's storage. Returns the future of its answer,
 * or NULL with errno set.
 */
flux_future_t *withheld_tell (struct job *job);

/* The job's storage was laid out. A file system over several rabbits may take
 * more of one than the scheduler gave the job there: tell it.
 */
void withheld_claimed (struct job *job);

/* The job has ended without an epilog, and its storage is still there: tell the
 * scheduler, if it does not know.
 */
void withheld_left (struct job *job);

/* The epilog timeout lets the job go, maybe while nobody can disable its rabbits: tell the
 * scheduler of its storage.
 */
void withheld_abandoned (struct job *job);

/* The job's storage is free.
 */
void withheld_end (struct job *job);

/* What no job has may have changed: tell the scheduler. Returns whether it has.
 */
bool withheld_changed (struct withheld *withheld);

/* A scheduler was just loaded: tell it of the storage of all such jobs, now, or
 * when what they hold has become known.
 */
void withheld_arrived (struct withheld *withheld);
void withheld_learned (struct withheld *withheld);

#endif /* !DWS_WITHHELD_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Withheld storage: the scheduler must not allocate the storage of jobs that release
 * their nodes before teardown (rabbit.release_nodes), nor persistent storage and that
 * of other clients. This part reports it to sched-rabbit. For Fluxion health/health.h
 * sets ssds down with the state of rabbits (libdws/health/fluxion.h), and a job is let
 * go after that.
 */

#ifndef DWS_WITHHELD_H
#define DWS_WITHHELD_H

#include <stdbool.h>
#include <flux/core.h>

#include "facts/jobs.h"

struct withheld *withheld_create (struct dws_ctx *ctx);
void withheld_destroy (struct withheld *withheld);

/* True if the scheduler must learn of this job's storage before the job is let
 * go.
 */
bool withheld_needed (const struct job *job);

/* With Fluxion: may this job be let go? If not, the job counts as leaving from now on;
 * ask again at events->scheduler_acknowledged.
 */
bool withheld_ready (struct job *job);

/* The scheduler has acknowledged all updates, was just loaded, or is gone: reconcile
 * the jobs that leave.
 */
void withheld_acknowledged (struct withheld *withheld);

/* Does this job have storage that Fluxion would allocate to others, now or when the job
 * leaves, unless its ssds are down?
 */
bool withheld_kept (const struct job *job);

/* The version that counts all jobs that leave up to now, for scheduler_tell().
 */
unsigned int withheld_version (const struct withheld *withheld);

/* Report this job's storage to the scheduler. Returns the future of its answer,
 * or NULL with errno set.
 */
flux_future_t *withheld_tell (struct job *job);

/* The job's storage was laid out. Report it to the scheduler if a file system
 * over several rabbits exceeds the job's reservation on one.
 */
void withheld_claimed (struct job *job);

/* The job has ended without an epilog, and its storage still exists: report it
 * to the scheduler, unless done before.
 */
void withheld_left (struct job *job);

/* The epilog has timed out, maybe while the job's rabbits cannot be disabled: report
 * the job's storage to the scheduler.
 */
void withheld_abandoned (struct job *job);

/* The job's storage is free: end the hold.
 */
void withheld_end (struct job *job);

/* Report storage that belongs to no job to the scheduler. Returns false if it
 * is unchanged.
 */
bool withheld_changed (struct withheld *withheld);

/* A scheduler was just loaded: report all withheld storage, now, or as soon as they
 * are known.
 */
void withheld_arrived (struct withheld *withheld);
void withheld_learned (struct withheld *withheld);

#endif /* !DWS_WITHHELD_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Records of jobs that are gone: their nodes were given back early, or they were let go,
 * and their workflow is still there. Flux may purge such a job, which removes its
 * directory from the KVS. A record that is written later would make the directory anew,
 * and Flux would take it for a lost job at its next start.
 *
 * The KVS cannot write on a condition. So the job's eventlog is looked for before the
 * records are written, and after it: if it is not there any more the directory is
 * removed again. A purge that comes later removes all of it.
 */

#ifndef DWS_LATE_H
#define DWS_LATE_H

#include <flux/core.h>

#include "facts/jobs.h"

/* May Flux have purged this job?
 */
bool late_is (const struct job *job);

/* What is to be written with the next late_commit(). Returns NULL with errno set.
 */
flux_kvs_txn_t *late_txn (struct job *job);

/* One of the records says that the job's data is out. Those who wait for that
 * (dws-jobtap/waits.c) are told by other means, if the job was purged.
 */
void late_moved (struct job *job);

/* Write it. Returns a future for those who wait, fulfilled also if the job was purged, or
 * NULL with errno set.
 */
flux_future_t *late_commit (struct job *job);

/* Drop what was not written.
 */
void late_forget (struct job *job);

#endif /* !DWS_LATE_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Records of jobs that are gone: their nodes were given back early, or they were let go,
 * and their workflow is still there. Flux may purge such a job, which removes its
 * directory from the KVS. A record that is written later would make the directory anew,
 * and Flux would take it for a lost job at its next start.
 *
 * The KVS cannot write on a condition. Therefore look up the job's eventlog before and
 * after the write. If the eventlog is gone after it, remove the directory. A later
 * purge removes the directory with the records.
 */

#ifndef DWS_LATE_H
#define DWS_LATE_H

#include <flux/core.h>

#include "facts/jobs.h"

/* May Flux have purged this job?
 */
bool late_is (const struct job *job);

/* The transaction that the next late_commit() writes. Returns NULL with errno set.
 */
flux_kvs_txn_t *late_txn (struct job *job);

/* Note that a record reports the end of stage-out. If the job was purged,
 * late_commit() tells jobs that wait for it (dws-jobtap/waits.c) through
 * losses_moved().
 */
void late_moved (struct job *job);

/* Is there a transaction to commit?
 */
bool late_pending (const struct job *job);

/* Commit the transaction. Returns a future, fulfilled also if the job was purged, or
 * NULL with errno set.
 */
flux_future_t *late_commit (struct job *job);

#endif /* !DWS_LATE_H */

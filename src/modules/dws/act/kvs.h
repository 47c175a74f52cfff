/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The module's keys in the KVS: the name of this instance, and a record of each
 * job's workflow in the job's own directory.
 */

#ifndef DWS_KVS_H
#define DWS_KVS_H

#include <stdbool.h>
#include <flux/core.h>

#include "libdws/facts/workflow.h"
#include "facts/jobs.h"

/* Read dws.instance, or make one and store it. Waits for the KVS, so call it
 * before the reactor runs. The caller frees the result.
 */
char *kvs_instance (flux_t *h);

/* Write rabbit_<state>_timing, or rabbit_workflow, of a job with the next commit. As
 * all records, they are stored in the job's directory, where its owner can read them
 * with flux job info, and once more in data.dws below that, the place for records of
 * services. If Flux has purged the job, its records are dropped (late.h).
 */
int kvs_put_timing (struct job *job, enum dws_state state, const char *elapsed);
int kvs_put_workflow (struct job *job, const char *record);

/* Returns a future of the commit of the job's records, or NULL with errno set. Always
 * call this after putting records: for a job that is gone, only this call writes them.
 */
flux_future_t *kvs_wait (struct job *job);

/* Start to store up to 'max' of a workflow's NnfDataMovement objects as
 * rabbit_datamovements, those that have failed first.
 */
flux_future_t *kvs_save_movements (struct job *job, json_t *objects, int max);

/* Start to store the logs of a job's containers as rabbit_container_log.
 */
flux_future_t *kvs_save_logs (struct job *job, json_t *logs);

/* Start to store the systemd units that a job needs on its nodes as
 * rabbit_daemons, for the prolog and epilog.
 */
flux_future_t *kvs_save_daemons (struct job *job, json_t *units);

/* Write the progress of a failed stage-out as rabbit_stage_out, with the next commit.
 */
int kvs_put_stage_out (struct job *job, json_t *record);

/* Start to read a key in a job's directory: the eventlog, or R, which the
 * second function gets from the future (a new reference).
 */
flux_future_t *kvs_lookup_job (flux_t *h, uint64_t id, const char *name);
json_t *kvs_lookup_R_get (flux_future_t *f);

#endif /* !DWS_KVS_H */

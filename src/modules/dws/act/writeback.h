/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Writes records of a job's workflow to the KVS, and memos, late: no other part waits for
 * them. They are kept for 10 s, or a minute for a job in the queue, since the cost of a
 * commit hardly depends on its size: consecutive states share one commit, and a newer
 * record replaces an unwritten one.
 *
 * The delay loses no records: the module writes all of them when it is unloaded, and a
 * broker that crashes loses everything since the last checkpoint of the KVS in any
 * case.
 */

#ifndef DWS_WRITEBACK_H
#define DWS_WRITEBACK_H

#include <flux/core.h>

#include "libdws/facts/workflow.h"
#include "facts/jobs.h"

struct writeback *writeback_create (struct dws_ctx *ctx);
void writeback_destroy (struct writeback *writeback);

/* Note rabbit_<state>_timing, or rabbit_workflow, bounded as libdws/tell/record.h says.
 * Both functions fail with ENOMEM, writeback_workflow() also with EINVAL.
 */
int writeback_timing (struct job *job, enum dws_state state, const char *elapsed);
int writeback_workflow (struct job *job, const char *object);

/* Note a memo that stays as long as the job is known.
 */
void writeback_memo (struct job *job, const char *key, const char *value);

/* Set the memos now, before another event is written to the job's eventlog.
 */
void writeback_send_memos (struct job *job);

/* Write what is unwritten now, so that the records are in the KVS before the job's
 * eventlog has the event of the next request to the job manager. The same happens when
 * the job's record is destroyed.
 */
void writeback_flush (struct job *job);

/* The same for a job with an unwritten record. Returns a future of the commit, or NULL
 * with errno.
 */
flux_future_t *writeback_commit (struct job *job);

#endif /* !DWS_WRITEBACK_H */

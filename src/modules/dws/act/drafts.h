/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Drafts: records of a job's workflow for the KVS, and memos, for which no other part
 * waits. A draft is held for 10 s, or a minute for a job in the queue, since the cost
 * of a commit hardly depends on its size: consecutive states share one commit, and a
 * newer record replaces an unwritten one.
 *
 * The delay loses no records: the module writes all drafts when it is unloaded, and a
 * broker that crashes loses everything since the last checkpoint of the KVS in any
 * case.
 */

#ifndef DWS_DRAFTS_H
#define DWS_DRAFTS_H

#include <flux/core.h>

#include "libdws/facts/workflow.h"
#include "facts/jobs.h"

struct drafts *drafts_create (struct dws_ctx *ctx);
void drafts_destroy (struct drafts *drafts);

/* Note rabbit_<state>_timing, or rabbit_workflow, bounded as libdws/tell/record.h says.
 * Both functions fail with ENOMEM, draft_workflow() also with EINVAL.
 */
int draft_timing (struct job *job, enum dws_state state, const char *elapsed);
int draft_workflow (struct job *job, const char *object);

/* Note a memo that stays as long as the job is known.
 */
void draft_memo (struct job *job, const char *key, const char *value);

/* Set the memos now, before another event is written to the job's eventlog.
 */
void draft_tell (struct job *job);

/* Write the draft now, so that the records are in the KVS before the job's eventlog has
 * the event of the next request to the job manager. A draft is also written when the
 * job's record is destroyed.
 */
void draft_send (struct job *job);

/* The same for a job with a draft record. Returns a future of the commit, or NULL with
 * errno.
 */
flux_future_t *draft_write (struct job *job);

#endif /* !DWS_DRAFTS_H */

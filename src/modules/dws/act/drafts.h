/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What is noted of a job and nobody waits for: records for the KVS of its workflow, and
 * memos. They are kept back for a while (10 s, of a job in the queue a minute), as what
 * a commit costs the KVS hardly depends on how much is in it:
 * states that follow each other come together in one, and a newer record takes the place of
 * one that was not written yet.
 *
 * Nothing is lost by that: a module that is unloaded writes what it has, and with the
 * broker goes what the KVS was told since its last checkpoint in any case.
 */

#ifndef DWS_DRAFTS_H
#define DWS_DRAFTS_H

#include <flux/core.h>

#include "libdws/facts/workflow.h"
#include "facts/jobs.h"

struct drafts *drafts_create (struct dws_ctx *ctx);
void drafts_destroy (struct drafts *drafts);

/* Note rabbit_<state>_timing, or rabbit_workflow, bounded as libdws/tell/record.h says. They
 * fail with ENOMEM, the latter with EINVAL, too.
 */
int draft_timing (struct job *job, enum dws_state state, const char *elapsed);
int draft_workflow (struct job *job, const char *object);

/* Note a memo that stays as long as the job is known.
 */
void draft_memo (struct job *job, const char *key, const char *value);

/* Set the memos now: something else is about to be written into the job's eventlog.
 */
void draft_tell (struct job *job);

/* Write what there is now: what the job manager is asked for next is in the job's eventlog
 * only when the records are there. Also to be called before the job's record goes away.
 */
void draft_send (struct job *job);

/* The same of a job that has a record: a future for those who wait for it. Returns NULL with
 * errno.
 */
flux_future_t *draft_write (struct job *job);

#endif /* !DWS_DRAFTS_H */

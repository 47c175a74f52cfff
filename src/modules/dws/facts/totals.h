/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * How much rabbit storage each user and each bank has at one time, and the jobs that
 * wait because that is limited (libdws/config/limits.h).
 *
 * Totals sum the bytes taken, never those asked for. A job counts once it is admitted:
 * first with the minimum of its directives and breakdowns (libdws/storage/sizes.h),
 * then, from layout to teardown, with its bytes in the ledger (space.h). The padding
 * that NNF adds is known only from the workflow; if that raises the sum, the job must
 * be admitted again before it gets storage. A persistent file system counts for its
 * owner, with its bytes in the ledger, when its job no longer counts. Every sum follows
 * from Flux and Kubernetes, so none is saved: after a restart the padding of a job that
 * waits for nodes counts only when the job has them.
 *
 * A waiting job waits for one account, in order of submission, and holds no storage. No
 * job passes an earlier one.
 */

#ifndef DWS_TOTALS_H
#define DWS_TOTALS_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/config/limits.h"
#include "facts/accounts.h"
#include "facts/jobs.h"

struct totals;

struct totals *totals_create (struct dws_ctx *ctx);
void totals_destroy (struct totals *totals);

/* Something about a job has changed.
 */
void totals_see_job (struct totals *totals, struct job *job);

/* The ledger, or the owners of persistent storage, have changed.
 */
void totals_see_space (struct totals *totals);

/* The claims of jobs from before this start have become known.
 */
void totals_space_known (struct totals *totals);

/* The configuration has changed: drop all rules found so far and count anew.
 */
void totals_recount (struct totals *totals);

/* The rules of the present configuration that apply to the job; NULL: not
 * determined yet.
 */
const struct dws_applying *totals_rules (const struct job *job);
void totals_set_rules (struct job *job, const struct dws_applying *applying);

/* The bytes that the job asks for and takes; NULL: unknown, out of memory.
 */
const struct dws_sizes *totals_sizes (const struct job *job);

/* Admit the job if its rules leave room and it is first in line, or if it is already
 * admitted with all that it takes. Otherwise the job waits, with facts->awaits set, and
 * jobs_changed() is called when it should be checked again.
 */
bool totals_admit (struct totals *totals, struct job *job);

/* Bring facts->awaits up to date. Returns false if the job does not wait.
 */
bool totals_update_text (struct totals *totals, struct job *job);

/* Call 'visit' for the account of each user and each bank. Without rules no account is
 * counted, so none is visited.
 */
void totals_each (struct totals *totals, account_f visit, void *arg);

#endif /* !DWS_TOTALS_H */

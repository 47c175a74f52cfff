/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * How much rabbit storage each user and each bank has at one time, and the jobs that
 * wait because that is limited (libdws/config/limits.h).
 *
 * What counts is what is taken of rabbits, never what was asked for. A job counts from
 * the moment in which it is let in: with what its directives and their breakdowns take
 * at least (libdws/storage/sizes.h) and, from when its storage is laid out until that is
 * torn down, with what the ledger has for it (space.h). What NNF adds is known only when
 * the job has a workflow: if it is more, the job is let in once more, before it gets
 * anything. A persistent file system counts for its owner with what the ledger has for
 * it, once the job that has made it counts no more. So all sums follow from what Flux
 * and Kubernetes say, and nothing of it is kept: of a job that waits for nodes when this
 * module starts what NNF adds is not known, and counts when it has them.
 *
 * Who waits, waits for one user or bank, and holds nothing. There the job that was
 * submitted first is first, and no other one passes it.
 */

#ifndef DWS_TOTALS_H
#define DWS_TOTALS_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/config/limits.h"
#include "facts/accounts.h"
#include "facts/jobs.h"

struct totals;
struct share;

struct totals *totals_create (struct dws_ctx *ctx);
void totals_destroy (struct totals *totals);

/* Something about a job has changed, or it is not known any more.
 */
void totals_see_job (struct totals *totals, struct job *job);
void totals_forget_job (struct totals *totals, struct job *job);

/* What is taken on rabbits, or who has persistent storage, has changed.
 */
void totals_see_space (struct totals *totals);

/* What jobs of before this start have there has become known.
 */
void totals_space_known (struct totals *totals);

/* The configuration is another: everything is counted anew. Rules of before are
 * not looked at.
 */
void totals_recount (struct totals *totals);

/* The rules that were found to decide for the job by the present configuration,
 * NULL: they were not looked for yet.
 */
const struct dws_applying *totals_rules (const struct job *job);
void totals_set_rules (struct totals *totals, struct job *job,
                       const struct dws_applying *applying);

/* What it asks for and takes; NULL: that is not known, for want of memory.
 */
const struct dws_sizes *totals_sizes (const struct job *job);

/* Let the job in, if there is room by its rules and it is its turn, or it has been let
 * in with all that it takes. Otherwise it waits, with facts->awaits set, and jobs_changed() is called when it is to ask
 * again.
 */
bool totals_admit (struct totals *totals, struct job *job);

/* Bring facts->awaits up to date. Returns false if the job does not wait.
 */
bool totals_update_text (struct totals *totals, struct job *job);

/* What each user and each bank has, unless there are no rules: nothing is counted
 * then.
 */
void totals_each (struct totals *totals, account_f visit, void *arg);

#endif /* !DWS_TOTALS_H */

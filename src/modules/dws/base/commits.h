/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Batches all KVS writes of one reactor turn, in which the workflows of many
 * jobs may have advanced, into one commit.
 */

#ifndef DWS_COMMITS_H
#define DWS_COMMITS_H

#include <flux/core.h>

struct commits;

struct commits *commits_create (flux_t *h);

/* Pending writes are still committed, but futures of commits_wait() are no
 * longer fulfilled.
 */
void commits_destroy (struct commits *commits);

/* The transaction to write to. Owned by 'commits'.
 */
flux_kvs_txn_t *commits_txn (struct commits *commits);

/* A new future for the commit of all writes so far. The next write may go to
 * another transaction.
 */
flux_future_t *commits_wait (struct commits *commits);

#endif /* !DWS_COMMITS_H */

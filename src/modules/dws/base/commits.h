/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Writes to the KVS, many in one commit: all that are made in one turn of the
 * reactor, in which the workflows of many jobs may have moved on.
 */

#ifndef DWS_COMMITS_H
#define DWS_COMMITS_H

#include <flux/core.h>

struct commits;

struct commits *commits_create (flux_t *h);

/* What was written is still committed, but no future of commits_wait() is
 * fulfilled any more.
 */
void commits_destroy (struct commits *commits);

/* The transaction to write to. Owned by 'commits'.
 */
flux_kvs_txn_t *commits_txn (struct commits *commits);

/* A new future of the commit of what was written so far. The next write may
 * go to another transaction.
 */
flux_future_t *commits_wait (struct commits *commits);

#endif /* !DWS_COMMITS_H */

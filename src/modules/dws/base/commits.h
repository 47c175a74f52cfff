/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Batches all KVS writes of one reactor turn, in which the workflows of many
 * jobs may have advanced, into one commit.
 */

#ifndef DWS_COMMITS_H
#define DWS_COMMITS_H

#include <jansson.h>
#include <flux/core.h>

struct commits;
struct dws_ctx;

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

/* Write 'o' to a key, and return the future of the commit.
 */
flux_future_t *commits_write (struct dws_ctx *ctx, const char *key, json_t *o);

/* The same for nobody who waits. If that fails, at once (returns -1) or later, it is
 * logged with the key, which is not copied.
 */
int commits_save (struct dws_ctx *ctx, const char *key, json_t *o);

/* Read the value of a key, and wait for it: for use before the reactor runs. '*o' is a
 * new reference, or NULL if there is no such key. Returns 0, or -1 with errno.
 */
int commits_load (flux_t *h, const char *key, json_t **o);

#endif /* !DWS_COMMITS_H */

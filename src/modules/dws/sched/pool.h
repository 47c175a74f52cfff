/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The pool: the nodes of the instance as the scheduler sees them, for the choice of
 * rabbits for data-first jobs. Requests are asynchronous, since schedulers may answer
 * late.
 */

#ifndef DWS_POOL_H
#define DWS_POOL_H

#include "libdws/storage/data_first.h"
#include "facts/jobs.h"

struct pool *pool_create (struct dws_ctx *ctx);
void pool_destroy (struct pool *pool);

/* The pool as of a moment ago: borrowed, for this reactor turn. NULL: the scheduler is
 * being asked, and jobs_changed() is called with its answer.
 */
const struct dws_pool *pool_get (struct pool *pool, struct job *job);

/* Request the pool anew; 'cb' is called once with the answer, if there is
 * one.
 */
typedef void (*pool_f)(struct dws_ctx *ctx, const struct dws_pool *nodes);

void pool_ask (struct pool *pool, pool_f cb);

/* The latest pool, however old, or NULL.
 */
const struct dws_pool *pool_last (const struct pool *pool);

#endif /* !DWS_POOL_H */

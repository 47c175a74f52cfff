/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The nodes of the instance, as the scheduler sees them: asked for when rabbits are to be
 * chosen for jobs that have no nodes yet. Schedulers may take a while to answer.
 */

#ifndef DWS_POOL_H
#define DWS_POOL_H

#include "libdws/storage/first.h"
#include "facts/jobs.h"

struct pool *pool_create (struct dws_ctx *ctx);
void pool_destroy (struct pool *pool);

/* What they were a moment ago: borrowed, until the reactor comes round. NULL: that is
 * being asked for, and jobs_changed() is called when it is known.
 */
const struct dws_pool *pool_get (struct pool *pool, struct job *job);

/* Ask what they are now; 'told' is called once with that, if it becomes known.
 */
typedef void (*pool_f)(struct dws_ctx *ctx, const struct dws_pool *nodes);

void pool_ask (struct pool *pool, pool_f told);

/* The last that is known, however old, or NULL.
 */
const struct dws_pool *pool_last (const struct pool *pool);

#endif /* !DWS_POOL_H */

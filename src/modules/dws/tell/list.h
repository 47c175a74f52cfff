/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The long answers of dws.status: every job, every rabbit.
 */

#ifndef DWS_LIST_H
#define DWS_LIST_H

#include <stdint.h>
#include <jansson.h>

#include "base/ctx.h"
#include "tell/describe.h"

/* At most 'max' jobs with an id above 'after', in the order of their ids:
 * {"jobs": [JOB...], "next"?: ID}, where 'next' is the 'after' of the request
 * for those that follow. NULL with errno ENOMEM.
 */
json_t *list_jobs (struct dws_ctx *ctx, const struct asker *asker,
                   uint64_t after, int max);

/* Every rabbit of the mapping: {"rabbits": [RABBIT...]}. Guests do not see who
 * uses it. NULL with errno ENOMEM.
 */
json_t *list_rabbits (struct dws_ctx *ctx, const struct asker *asker);

/* The rabbits in one object: how many in which state, and their bytes.
 */
json_t *list_totals (struct dws_ctx *ctx);

#endif /* !DWS_LIST_H */

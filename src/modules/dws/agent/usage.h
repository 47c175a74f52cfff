/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What is taken on the rabbits and by whom (facts/space.h), from the Servers
 * objects that the agent reports: of jobs, of persistent storage, and of other
 * clients.
 */

#ifndef DWS_USAGE_H
#define DWS_USAGE_H

#include <stdbool.h>
#include <jansson.h>

#include "base/ctx.h"

/* Take in all Servers objects, or a change of one.
 */
void usage_list (struct dws_ctx *ctx, json_t *objects);
void usage_learn (struct dws_ctx *ctx, json_t *servers, bool deleted);

/* All Servers objects and all workflows are known, or all jobs: find out what is
 * whose.
 */
void usage_known (struct dws_ctx *ctx);

#endif /* !DWS_USAGE_H */

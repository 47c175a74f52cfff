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

/* Take in what a part of a snapshot has of all Servers objects (NULL: none). The parts
 * that have any come first. '*listing' is kept from one to the next, and false before
 * the first of all; there are 'more' parts.
 */
void usage_list (struct dws_ctx *ctx, json_t *objects, bool *listing, bool more);

/* Take in a change of one.
 */
void usage_learn (struct dws_ctx *ctx, json_t *servers, bool deleted);

/* All Servers objects and all workflows are known, or all jobs: find out what is
 * whose.
 */
void usage_known (struct dws_ctx *ctx);

#endif /* !DWS_USAGE_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Fills the ledger (facts/space.h) from the Servers objects that the agent
 * reports: of jobs, of persistent storage and of other clients.
 */

#ifndef DWS_USAGE_H
#define DWS_USAGE_H

#include <stdbool.h>
#include <jansson.h>

#include "base/ctx.h"

/* Take in the Servers objects of one part of a snapshot (NULL: none). Parts with
 * objects come first. The caller keeps '*listing' between parts and sets it to false
 * before the first; 'more' parts follow.
 */
void usage_list (struct dws_ctx *ctx, json_t *objects, bool *listing, bool more);

/* Take in a change of one.
 */
void usage_learn (struct dws_ctx *ctx, json_t *servers, bool deleted);

/* All Servers objects and workflows, or all jobs, are known: find the owners of the
 * ledger's entries.
 */
void usage_known (struct dws_ctx *ctx);

#endif /* !DWS_USAGE_H */

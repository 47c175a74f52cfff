/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Waived nodes: nodes that a job goes on without, and that still have its file systems
 * mounted although all its other nodes are unmounted.
 */

#ifndef DWS_WAIVED_H
#define DWS_WAIVED_H

#include <jansson.h>

#include "base/ctx.h"

/* All waived nodes, {HOST: true}, or null where that is unknown (yet): the caller then
 * leaves the node as it is. Nodes used by another job are left out, as DWS would not
 * wait for that job's file systems either. A new object, NULL: out of memory.
 */
json_t *waived_nodes (struct dws_ctx *ctx);

#endif /* !DWS_WAIVED_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Keeps the SystemStatus object, by which DWS knows which nodes not to wait
 * for. There need not be one.
 */

#ifndef DWS_SYSTEMSTATUS_H
#define DWS_SYSTEMSTATUS_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/health/health.h"
#include "base/ctx.h"

struct systemstatus *systemstatus_create (struct dws_ctx *ctx);
void systemstatus_destroy (struct systemstatus *status);

/* An agent has attached: read the object anew.
 */
void systemstatus_start (struct systemstatus *status);

/* The state of nodes has been read anew: note which of them are offline. The
 * nodes that systemstatus_update() was given are not used any more.
 */
void systemstatus_learn (struct systemstatus *status,
                         const struct dws_nodes *nodes);

/* Bring the object in step with the state of the nodes, which must stay valid
 * until the next call. 'stuck' as for dws_health_systemstatus(). This is done
 * again when an offline node's grace ends.
 */
void systemstatus_update (struct systemstatus *status,
                          const struct dws_nodes *nodes,
                          json_t *stuck);

/* True when there is nothing left to do.
 */
bool systemstatus_settled (const struct systemstatus *status);

#endif /* !DWS_SYSTEMSTATUS_H */

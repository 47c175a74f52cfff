/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Updates the SystemStatus object, which lists the nodes for which DWS does not
 * wait. The object is optional.
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

/* The state of nodes was read anew: note offline nodes, and drop the nodes
 * borrowed by systemstatus_update().
 */
void systemstatus_learn (struct systemstatus *status,
                         const struct dws_nodes *nodes);

/* Bring the object in step with the state of the nodes, which must stay valid
 * until the next call. 'stuck' as for dws_health_systemstatus(). The update is
 * repeated when an offline node's grace ends.
 */
void systemstatus_update (struct systemstatus *status,
                          const struct dws_nodes *nodes,
                          json_t *stuck);

/* True if the object is up to date.
 */
bool systemstatus_settled (const struct systemstatus *status);

#endif /* !DWS_SYSTEMSTATUS_H */

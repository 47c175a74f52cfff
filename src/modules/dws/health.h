/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Keeps Flux and DWS in step about what is broken: what Storage objects say
 * of rabbits and links goes to the scheduler and to the resource module as
 * drains, what the resource module says of nodes goes to SystemStatus.
 *
 * All facts are asked for anew after a restart of this module, the agent, the
 * resource module or the scheduler; what libdws/health.h makes of them is
 * compared with what each was told, and the difference sent in one request.
 */

#ifndef DWS_HEALTH_MODULE_H
#define DWS_HEALTH_MODULE_H

#include <jansson.h>

#include "ctx.h"

struct health *health_create (struct dws_ctx *ctx);
void health_destroy (struct health *health);

/* Ask for what is not known yet. The rest of the module is complete.
 */
void health_start (struct health *health);

/* Storage objects, or the configuration, have changed.
 */
void health_changed (struct health *health);

/* The agent has attached.
 */
void health_agent_attached (struct health *health);

/* These nodes (a hostlist) could not be unmounted and are being drained.
 */
void health_stuck (struct health *health, const char *hosts);

/* For dws.status: a new object.
 */
json_t *health_status (const struct health *health);

#endif /* !DWS_HEALTH_MODULE_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Keeps Flux and DWS in step about broken nodes, links and rabbits: what
 * Storage objects say of rabbits and links goes to the scheduler, and to the
 * resource module as drains; what the resource module says of nodes goes to
 * SystemStatus.
 *
 * All facts are asked for anew after a restart of this module, the agent, the
 * resource module or the scheduler. The decisions of libdws/health/health.h are
 * compared with what each of these was told, and the difference is sent in one
 * request.
 */

#ifndef DWS_HEALTH_MODULE_H
#define DWS_HEALTH_MODULE_H

#include <jansson.h>

#include "base/ctx.h"
#include "facts/jobs.h"

struct health *health_create (struct dws_ctx *ctx);
void health_destroy (struct health *health);

/* Ask for the facts. To be called when all parts of the module exist.
 */
void health_start (struct health *health);

/* Storage objects, or the configuration, have changed.
 */
void health_changed (struct health *health);

/* A job's workflow has changed, or is gone.
 */
void health_see_job (struct health *health, const struct job *job);

/* Somebody has taken space on a rabbit, or given it back.
 */
void health_see_space (struct health *health);

/* The agent has attached.
 */
void health_agent_attached (struct health *health);

/* The plugin has told of all jobs; it may be another than before.
 */
void health_plugin_arrived (struct health *health);

/* These nodes (a hostlist) could not be unmounted and are being drained.
 */
void health_stuck (struct health *health, const char *hosts);

/* For dws.status: a new object.
 */
json_t *health_status (const struct health *health);

#endif /* !DWS_HEALTH_MODULE_H */

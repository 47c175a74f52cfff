/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Synchronizes Flux and DWS about broken nodes, links and rabbits: the state of
 * rabbits and links in Storage objects goes to the scheduler, and to the
 * resource module as drains; the state of nodes in the resource module goes to
 * SystemStatus.
 *
 * A restart of this module, the agent, the resource module or the scheduler
 * causes all facts to be read again. Each recipient gets the difference between
 * the decisions of libdws/health/health.h and its last update, in one request.
 */

#ifndef DWS_HEALTH_MODULE_H
#define DWS_HEALTH_MODULE_H

#include <jansson.h>

#include "base/ctx.h"
#include "facts/jobs.h"

struct health *health_create (struct dws_ctx *ctx);
void health_destroy (struct health *health);

/* Request the facts. Call this when all parts of the module exist.
 */
void health_start (struct health *health);

/* Storage objects, or the configuration, have changed.
 */
void health_changed (struct health *health);

/* A job's workflow has changed, or is gone.
 */
void health_see_job (struct health *health, const struct job *job);

/* Space on a rabbit was taken or freed.
 */
void health_see_space (struct health *health);

/* The agent has attached.
 */
void health_agent_attached (struct health *health);

/* The plugin, maybe loaded anew, has reported all jobs.
 */
void health_plugin_arrived (struct health *health);

/* The nodes in 'hosts' (a hostlist) could not be unmounted and are being
 * drained.
 */
void health_stuck (struct health *health, const char *hosts);

/* The nodes without a working rabbit: a hostlist, borrowed.
 */
const char *health_bad (const struct health *health);

/* For dws.status: a new object.
 */
json_t *health_status (const struct health *health);

#endif /* !DWS_HEALTH_MODULE_H */

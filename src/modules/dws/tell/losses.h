/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Losses: data of ended jobs that was not staged out, of which no exception can
 * inform their owners any more. A loss stays in the KVS until it is
 * acknowledged.
 */

#ifndef DWS_LOSSES_H
#define DWS_LOSSES_H

#include <jansson.h>
#include <flux/core.h>

#include "facts/jobs.h"

/* Reads from the KVS the losses, and the purged jobs whose stage-out is done.
 */
struct losses *losses_create (struct dws_ctx *ctx);
void losses_destroy (struct losses *losses);

/* Record a loss. Returns the future of its commit, or NULL with errno set. A later loss
 * of the same job replaces the earlier. 'until' is when retries of the stage-out end,
 * 0: none is possible.
 */
flux_future_t *losses_report (struct job *job, const char *text, double until);

/* Remove the loss of a job, if there is one: its data has been staged out after all.
 * Returns as losses_report().
 */
flux_future_t *losses_made_good (struct job *job);

/* A job's workflow is gone: record the loss, if that loses data.
 */
void losses_vanished (struct job *job);

/* Note that the data of a purged job is staged out. dws-jobtap/waits.c searches here,
 * as the job has no record in the KVS.
 */
void losses_moved (struct dws_ctx *ctx, uint64_t id, uint32_t userid);

/* {"listed": N, "total": N since the module was loaded}
 */
json_t *losses_status (const struct losses *losses);

/* The dws.losses request.
 */
void losses_cb (flux_t *h, flux_msg_handler_t *mh,
                const flux_msg_t *msg, void *arg);

#endif /* !DWS_LOSSES_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Losses: data of jobs that was not staged out after their end, when no
 * exception can tell their owners any more. They are kept in the KVS until
 * somebody acknowledges them.
 */

#ifndef DWS_LOSSES_H
#define DWS_LOSSES_H

#include <jansson.h>
#include <flux/core.h>

#include "facts/jobs.h"

/* Reads the losses in the KVS, and whose data is out.
 */
struct losses *losses_create (struct dws_ctx *ctx);
void losses_destroy (struct losses *losses);

/* Put a loss on record. Returns the future of its commit, or NULL with errno
 * set. A later loss of the same job takes the place of the earlier. 'until': the
 * stage-out can be tried again as long, 0: it cannot.
 */
flux_future_t *losses_report (struct job *job, const char *text, double until);

/* The data of a job that may be on the list has been staged out all the same. As
 * losses_report().
 */
flux_future_t *losses_made_good (struct job *job);

/* A job's workflow does not exist any more: if data is lost by that, put it on
 * record.
 */
void losses_vanished (struct job *job);

/* The data of a job that Flux has purged is out: dws-jobtap/waits.c looks for it here, as
 * there is no record of that job.
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

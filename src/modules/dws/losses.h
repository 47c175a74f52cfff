/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Data of jobs that was not staged out after their end, when no exception
 * can tell them any more. Kept in the KVS until somebody acknowledges it.
 */

#ifndef DWS_LOSSES_H
#define DWS_LOSSES_H

#include <jansson.h>
#include <flux/core.h>

#include "jobs.h"

/* Reads what is in the KVS.
 */
struct losses *losses_create (struct dws_ctx *ctx);
void losses_destroy (struct losses *losses);

/* Put a loss on record. Returns the future of that, or NULL with errno set.
 * A later one of the same job takes the place of the earlier.
 */
flux_future_t *losses_report (struct job *job, const char *text);

/* The workflow is not there any more: if that is a loss, put it on record.
 */
void losses_vanished (struct job *job);

/* {"listed": N, "total": N since the module was loaded}
 */
json_t *losses_status (const struct losses *losses);

/* The dws.losses request.
 */
void losses_cb (flux_t *h, flux_msg_handler_t *mh,
                const flux_msg_t *msg, void *arg);

#endif /* !DWS_LOSSES_H */

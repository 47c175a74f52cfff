/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.status: of one job, for its owner; of everything, for the instance
 * owner; of a user's own jobs, for that user.
 */

#ifndef DWS_STATUS_H
#define DWS_STATUS_H

#include <flux/core.h>

/* The payload is {"jobid"?: ID, "list"?: "jobs"|"rabbits", "after"?: ID,
 * "max"?: N}; arg is the struct dws_ctx. doc/protocol.md lists the keys of the
 * answers.
 */
void status_cb (flux_t *h, flux_msg_handler_t *mh,
                const flux_msg_t *msg, void *arg);

#endif /* !DWS_STATUS_H */

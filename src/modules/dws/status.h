/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.status: of one job, for its owner; of everything, for the instance
 * owner; of a user's own jobs, for that user.
 */

#ifndef DWS_STATUS_H
#define DWS_STATUS_H

#include <stdbool.h>
#include <jansson.h>
#include <flux/core.h>

#include "jobs.h"
#include "list.h"

/* The payload is {"jobid"?: ID, "list"?: "jobs"|"rabbits", "after"?: ID,
 * "max"?: N}; arg is the struct dws_ctx. doc/protocol.md lists the keys of the
 * answers.
 */
void status_cb (flux_t *h, flux_msg_handler_t *mh,
                const flux_msg_t *msg, void *arg);

/* What there is to say about a job in a list. NULL with errno ENOMEM.
 */
json_t *status_job (struct job *job);

/* Whether the job is any of the asker's business.
 */
bool status_visible (const struct job *job, const struct asker *asker);

#endif /* !DWS_STATUS_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The job-manager.dws.* services, for the instance owner. Every request is
 * idempotent: to release a job that is not held, or no longer there, is a
 * success.
 */

#ifndef DWS_JOBTAP_SERVICE_H
#define DWS_JOBTAP_SERVICE_H

#include "job.h"

int jobtap_service_register (struct jobtap *ctx);

/* Handle the requests that waited for a job to be known.
 */
void jobtap_service_retry (struct jobtap *ctx);

/* Return a new array of all jobs that matter to the dws service, or NULL with
 * errno ENOMEM.
 */
json_t *jobtap_service_list (struct jobtap *ctx);

#endif /* !DWS_JOBTAP_SERVICE_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Requests from the plugin to the dws service. Each replaces the job's last
 * one. When the service is not there the job waits where it is: the service
 * asks for all jobs when it starts. Any other failure becomes a fatal job
 * exception. The functions return 0, or -1 with errno when nothing was sent.
 */

#ifndef DWS_JOBTAP_REQUEST_H
#define DWS_JOBTAP_REQUEST_H

#include "job.h"

/* For a job that the plugin does not hold any more a failure is logged only.
 */
int jobtap_request_create (struct jobtap_job *job);

/* Fetch R from the KVS, then send dws.setup.
 */
int jobtap_request_setup (struct jobtap_job *job);

int jobtap_request_post_run (struct jobtap_job *job);

/* Failure is logged only.
 */
void jobtap_request_teardown (struct jobtap_job *job);

#endif /* !DWS_JOBTAP_REQUEST_H */

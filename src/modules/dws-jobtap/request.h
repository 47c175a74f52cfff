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

int dws_request_create (struct dws_job *job);

/* Fetch R from the KVS, then send dws.setup.
 */
int dws_request_setup (struct dws_job *job);

int dws_request_post_run (struct dws_job *job);

/* Of these two, failure is logged only. */
void dws_request_teardown (struct dws_job *job);
void dws_request_abort (struct dws_job *job);

#endif /* !DWS_JOBTAP_REQUEST_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.logs: the output of the containers of an active job, read from Kubernetes for
 * each request. act/records.c writes the job's record of it at the end.
 */

#ifndef DWS_LOGS_H
#define DWS_LOGS_H

#include <flux/core.h>

/* The dws.logs request. Its answer comes from Kubernetes.
 */
void logs_cb (flux_t *h, flux_msg_handler_t *mh,
              const flux_msg_t *msg, void *arg);

#endif /* !DWS_LOGS_H */

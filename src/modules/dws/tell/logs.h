/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.logs: what the containers of an active job have printed, read from Kubernetes
 * when somebody asks. The record that stays with the job is made at its end
 * (act/records.c).
 */

#ifndef DWS_LOGS_H
#define DWS_LOGS_H

#include <flux/core.h>

/* The dws.logs request. Its answer comes from Kubernetes.
 */
void logs_cb (flux_t *h, flux_msg_handler_t *mh,
              const flux_msg_t *msg, void *arg);

#endif /* !DWS_LOGS_H */

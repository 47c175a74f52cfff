/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Stage-outs that have failed and can be tried again while the data is still there.
 * What is asked for is written into the workflow, and carried out from there.
 */

#ifndef DWS_ACT_RETRY_H
#define DWS_ACT_RETRY_H

#include <flux/core.h>

/* The dws.retry request. Its answer comes from Kubernetes.
 */
void retry_cb (flux_t *h, flux_msg_handler_t *mh,
               const flux_msg_t *msg, void *arg);

#endif /* !DWS_ACT_RETRY_H */

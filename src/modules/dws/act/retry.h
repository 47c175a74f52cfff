/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Stage-outs that have failed and can be tried again while the data is still there. The
 * module writes the request into the workflow and carries it out from there, so that a
 * restart does not lose it.
 */

#ifndef DWS_ACT_RETRY_H
#define DWS_ACT_RETRY_H

#include <flux/core.h>

/* The dws.retry request. Its answer comes from Kubernetes.
 */
void retry_cb (flux_t *h, flux_msg_handler_t *mh,
               const flux_msg_t *msg, void *arg);

#endif /* !DWS_ACT_RETRY_H */

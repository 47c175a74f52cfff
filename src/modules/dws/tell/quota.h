/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.quota: the storage of users and banks that [rabbit.limits] counts.
 */

#ifndef DWS_QUOTA_H
#define DWS_QUOTA_H

#include <flux/core.h>

/* The dws.quota request.
 */
void quota_cb (flux_t *h, flux_msg_handler_t *mh,
               const flux_msg_t *msg, void *arg);

#endif /* !DWS_QUOTA_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * When a persistent file system expires is changed by its owner.
 */

#ifndef DWS_EXPIRY_H
#define DWS_EXPIRY_H

#include <flux/core.h>

/* The dws.expiry request.
 */
void expiry_cb (flux_t *h, flux_msg_handler_t *mh,
                const flux_msg_t *msg, void *arg);

#endif /* !DWS_EXPIRY_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.expiry: owners change when their persistent file systems expire.
 */

#ifndef DWS_EXPIRY_H
#define DWS_EXPIRY_H

#include <flux/core.h>

/* The dws.expiry request.
 */
void expiry_cb (flux_t *h, flux_msg_handler_t *mh,
                const flux_msg_t *msg, void *arg);

#endif /* !DWS_EXPIRY_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.user: the name of a user, for the jobtap plugin, which may not wait for the name
 * service. A request waits for the answer of the name service; if the service itself
 * fails, the lookup is repeated rather than the user refused.
 */

#ifndef DWS_USERS_H
#define DWS_USERS_H

#include <stdint.h>
#include <flux/core.h>

#include "base/ctx.h"

/* Destruction answers pending requests with ENOSYS, as if the service did not
 * exist.
 */
struct users *users_create (struct dws_ctx *ctx);
void users_destroy (struct users *users);

void users_cb (flux_t *h, flux_msg_handler_t *mh,
               const flux_msg_t *msg, void *arg);

/* An answer about a user has arrived.
 */
void users_found (struct users *users, uint32_t userid);

#endif /* !DWS_USERS_H */

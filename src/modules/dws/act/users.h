/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.user: the name of a user, for the jobtap plugin, which may not wait for the
 * name service. A request is answered when that has spoken; a failure of the name
 * service itself is none of the user's, and waited out.
 */

#ifndef DWS_USERS_H
#define DWS_USERS_H

#include <stdint.h>
#include <flux/core.h>

#include "base/ctx.h"

/* Those that have no answer yet are refused by destruction as if there were no
 * service.
 */
struct users *users_create (struct dws_ctx *ctx);
void users_destroy (struct users *users);

void users_cb (flux_t *h, flux_msg_handler_t *mh,
               const flux_msg_t *msg, void *arg);

/* Something has become known of a user.
 */
void users_found (struct users *users, uint32_t userid);

#endif /* !DWS_USERS_H */

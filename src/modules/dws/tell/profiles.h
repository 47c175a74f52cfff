/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.profiles: the profiles of NNF that users may name in directives. Each
 * request reads them from Kubernetes; no copy is kept.
 */

#ifndef DWS_PROFILES_H
#define DWS_PROFILES_H

#include <flux/core.h>

#include "base/ctx.h"

struct profiles *profiles_create (struct dws_ctx *ctx);
void profiles_destroy (struct profiles *profiles);

/* The agent is gone: pending queries get no answer.
 */
void profiles_agent_lost (struct profiles *profiles);

/* The sender of 'msg' has gone.
 */
void profiles_disconnect (struct profiles *profiles, const flux_msg_t *msg);

void profiles_cb (flux_t *h, flux_msg_handler_t *mh,
                  const flux_msg_t *msg, void *arg);

#endif /* !DWS_PROFILES_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.profiles: the profiles of NNF that users may name in directives. They are
 * read from Kubernetes when somebody asks, and kept nowhere.
 */

#ifndef DWS_PROFILES_H
#define DWS_PROFILES_H

#include <flux/core.h>

#include "base/ctx.h"

struct profiles *profiles_create (struct dws_ctx *ctx);
void profiles_destroy (struct profiles *profiles);

/* Queries to the agent will not be answered any more.
 */
void profiles_agent_lost (struct profiles *profiles);

/* The sender of 'msg' has gone.
 */
void profiles_disconnect (struct profiles *profiles, const flux_msg_t *msg);

void profiles_cb (flux_t *h, flux_msg_handler_t *mh,
                  const flux_msg_t *msg, void *arg);

#endif /* !DWS_PROFILES_H */

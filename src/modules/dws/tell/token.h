/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.token: the secret with which a job's processes prove to containers on
 * its rabbits whose they are. It is read from Kubernetes when a shell of the
 * job asks, given to the job's owner and to nobody else, and kept nowhere.
 */

#ifndef DWS_TOKEN_H
#define DWS_TOKEN_H

#include <flux/core.h>

#include "base/ctx.h"

struct tokens *tokens_create (struct dws_ctx *ctx);
void tokens_destroy (struct tokens *tokens);

/* Look again at requests that wait: the facts that they wait for may be
 * complete now.
 */
void tokens_retry (struct tokens *tokens);

/* Queries to the agent will not be answered any more.
 */
void tokens_agent_lost (struct tokens *tokens);

/* The sender of 'msg' has gone.
 */
void tokens_disconnect (struct tokens *tokens, const flux_msg_t *msg);

void token_cb (flux_t *h, flux_msg_handler_t *mh,
               const flux_msg_t *msg, void *arg);

#endif /* !DWS_TOKEN_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * dws.token: the secret with which a job's processes prove to containers on its
 * rabbits whose they are. Each query of a shell reads it from Kubernetes. Only
 * the job's owner gets it, and no copy is kept.
 */

#ifndef DWS_TOKEN_H
#define DWS_TOKEN_H

#include <flux/core.h>

#include "base/ctx.h"

struct tokens *tokens_create (struct dws_ctx *ctx);
void tokens_destroy (struct tokens *tokens);

/* Retry pending requests: the facts that they need may be complete now.
 */
void tokens_retry (struct tokens *tokens);

/* The agent is gone: pending queries get no answer.
 */
void tokens_agent_lost (struct tokens *tokens);

/* The sender of 'msg' has gone.
 */
void tokens_disconnect (struct tokens *tokens, const flux_msg_t *msg);

void token_cb (flux_t *h, flux_msg_handler_t *mh,
               const flux_msg_t *msg, void *arg);

#endif /* !DWS_TOKEN_H */

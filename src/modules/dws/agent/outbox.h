/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The outbox batches all commands of one reactor turn into one message, if the agent
 * supports that: a message costs the brokers and the agent as much as a command in it.
 */

#ifndef DWS_OUTBOX_H
#define DWS_OUTBOX_H

#include <stdbool.h>
#include <flux/core.h>
#include <jansson.h>

struct outbox;

/* 'failed' is called with errno when commands could not be sent; these are
 * lost.
 */
struct outbox *outbox_create (flux_t *h, void (*failed)(void *arg), void *arg);
void outbox_destroy (struct outbox *box);

/* Send commands to the sender of 'request' from now on.
 */
void outbox_open (struct outbox *box, const flux_msg_t *request, bool batches);

/* Drop the commands that are not sent yet.
 */
void outbox_close (struct outbox *box);

/* Queue a command for the next reactor turn. Returns -1 with errno.
 */
int outbox_put (struct outbox *box, json_t *command);

#endif /* !DWS_OUTBOX_H */

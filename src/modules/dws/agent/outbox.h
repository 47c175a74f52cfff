/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Commands on their way to the agent: all that one turn of the reactor has led to go in one
 * message, if the agent takes several in one. A message costs the broker, the agent and
 * what is between them as much as what is in it.
 */

#ifndef DWS_OUTBOX_H
#define DWS_OUTBOX_H

#include <stdbool.h>
#include <flux/core.h>
#include <jansson.h>

struct outbox;

/* 'failed' is called with errno when commands could not be sent. They are lost.
 */
struct outbox *outbox_create (flux_t *h, void (*failed)(void *arg), void *arg);
void outbox_destroy (struct outbox *box);

/* From now on commands go to the sender of 'request'.
 */
void outbox_open (struct outbox *box, const flux_msg_t *request, bool batches);

/* Those that are not sent yet are dropped.
 */
void outbox_close (struct outbox *box);

/* Have a command sent at the next turn of the reactor. Returns -1 with errno.
 */
int outbox_put (struct outbox *box, json_t *command);

#endif /* !DWS_OUTBOX_H */

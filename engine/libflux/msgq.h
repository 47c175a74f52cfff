/* SPDX-License-Identifier: LGPL-3.0-only */
/* msgq.h - a double ended queue of messages that grows as needed.  The
 * queue owns one reference of each message in it.  No locking.
 */
#ifndef SOLO_MSGQ_H
#define SOLO_MSGQ_H

#include <flux/core.h>

struct msgq {
    flux_msg_t **ring;
    size_t size;            // power of two, or 0
    size_t head;
    size_t count;
};

/* On success the caller's reference passes to the queue. */
int msgq_push_back (struct msgq *q, flux_msg_t *msg);
int msgq_push_front (struct msgq *q, flux_msg_t *msg);

/* The oldest, or NULL. */
flux_msg_t *msgq_pop (struct msgq *q);

/* Drop all messages and the memory; the queue is then empty and usable. */
void msgq_clear (struct msgq *q);

#endif

/* SPDX-License-Identifier: LGPL-3.0-only */
/* msgq.c - see msgq.h */

#include "libutil/errno_safe.h"
#include "msgq.h"

static int make_room (struct msgq *q)
{
    size_t size = q->size ? 2 * q->size : 8;
    flux_msg_t **ring;

    if (q->count < q->size)
        return 0;
    if (!(ring = malloc (size * sizeof (*ring))))
        return -1;
    for (size_t i = 0; i < q->count; i++)
        ring[i] = q->ring[(q->head + i) & (q->size - 1)];
    free (q->ring);
    q->ring = ring;
    q->size = size;
    q->head = 0;
    return 0;
}

int msgq_push_back (struct msgq *q, flux_msg_t *msg)
{
    if (make_room (q) < 0)
        return -1;
    q->ring[(q->head + q->count++) & (q->size - 1)] = msg;
    return 0;
}

int msgq_push_front (struct msgq *q, flux_msg_t *msg)
{
    if (make_room (q) < 0)
        return -1;
    q->head = (q->head - 1) & (q->size - 1);
    q->ring[q->head] = msg;
    q->count++;
    return 0;
}

flux_msg_t *msgq_pop (struct msgq *q)
{
    flux_msg_t *msg;

    if (q->count == 0)
        return NULL;
    msg = q->ring[q->head];
    q->head = (q->head + 1) & (q->size - 1);
    q->count--;
    return msg;
}

void msgq_clear (struct msgq *q)
{
    ERRNO_SAFE_BLOCK;
    flux_msg_t *msg;

    while ((msg = msgq_pop (q)))
        flux_msg_decref (msg);
    free (q->ring);
    *q = (struct msgq){ 0 };
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * queue.h - what the files about queues share: which there are (queue.c), and
 * the requests to start and stop them (queue_requests.c).
 */
#ifndef SOLO_QUEUE_H
#define SOLO_QUEUE_H

#include "manager.h"

struct queue {
    struct queue *next;
    char *name;             // NULL: the anonymous one
    bool started;
    bool sticky_started;    // what a checkpoint remembers
    char *stop_reason;
    bool mark;
};

struct queues {
    struct manager *jm;
    struct queue *list;
    bool stop_on_restart;
};

/* EINVAL: there is none of that name, or without name. */
struct queue *queue_find (struct queues *queues, const char *name,
                          flux_error_t *error);
bool queues_have_names (struct queues *queues);

#endif

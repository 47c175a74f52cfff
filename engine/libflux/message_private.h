/* SPDX-License-Identifier: LGPL-3.0-only */
/* message_private.h - what a message is made of.
 *
 * A message belongs to one thread at a time.  The bytes of its payload do
 * not change once set, so copies share them, also between threads: passing
 * a message on never copies JSON text.
 */
#ifndef SOLO_MESSAGE_PRIVATE_H
#define SOLO_MESSAGE_PRIVATE_H

#include <flux/core.h>
#include <jansson.h>

#include "aux.h"

struct payload {
    int refcount;               // atomic
    size_t size;
    char data[];
};

struct flux_msg {
    int refcount;               // atomic
    uint8_t type;
    uint8_t flags;
    uint32_t userid;
    uint32_t rolemask;
    union {                     // by type
        uint32_t nodeid;
        uint32_t errnum;
        uint32_t seq;
        uint32_t control_type;
        uint32_t aux1;
    };
    union {
        uint32_t matchtag;
        uint32_t control_status;
        uint32_t aux2;
    };
    char *topic;
    char **routes;              // [0] is the sender
    int route_count;
    struct payload *payload;
    json_t *json;               // parsed payload, once asked for
    struct aux_item *aux;
};

struct payload *payload_create (const void *data, size_t size);
void payload_decref (struct payload *payload);

/* Forget aux and parsed payload: the message goes to another thread. */
void message_detach (flux_msg_t *msg);

static inline bool message_type_valid (int type)
{
    return type == FLUX_MSGTYPE_REQUEST || type == FLUX_MSGTYPE_RESPONSE
           || type == FLUX_MSGTYPE_EVENT || type == FLUX_MSGTYPE_CONTROL;
}

#endif

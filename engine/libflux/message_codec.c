/* SPDX-License-Identifier: LGPL-3.0-only */
/* message_codec.c - the wire form of a message.
 *
 *   magic, version, type, flags                   1 byte each
 *   userid, rolemask, aux1, aux2                  4 bytes each, big endian
 *   if FLAG_ROUTE: number of routes, then each    length (4), bytes
 *   if FLAG_TOPIC: topic                          length (4), bytes
 *   if FLAG_PAYLOAD: payload                      length (4), bytes
 *
 * A message that does not end where its last part ends is refused, and one
 * with more routes than any way through an instance has.
 */

#include <arpa/inet.h>

#include "message_private.h"

#define MAGIC 0x5f
#define VERSION 1
#define HEADER_SIZE 20
#define MAX_ROUTES 64

struct cursor {
    uint8_t *p;
    size_t left;
};

ssize_t flux_msg_encode_size (const flux_msg_t *msg)
{
    size_t size = HEADER_SIZE;

    if (!msg) {
        errno = EINVAL;
        return -1;
    }
    if (msg->flags & FLUX_MSGFLAG_ROUTE) {
        size += 4;
        for (int i = 0; i < msg->route_count; i++)
            size += 4 + strlen (msg->routes[i]);
    }
    if (msg->topic)
        size += 4 + strlen (msg->topic);
    if (msg->payload)
        size += 4 + msg->payload->size;
    return size;
}

static void put_u32 (struct cursor *c, uint32_t n)
{
    n = htonl (n);
    memcpy (c->p, &n, 4);
    c->p += 4;
}

static void put_bytes (struct cursor *c, const void *data, size_t size)
{
    put_u32 (c, size);
    memcpy (c->p, data, size);
    c->p += size;
}

int flux_msg_encode (const flux_msg_t *msg, void *buf, size_t size)
{
    ssize_t need = flux_msg_encode_size (msg);
    struct cursor c = { .p = buf };

    if (need < 0 || !buf || size < (size_t)need) {
        errno = EINVAL;
        return -1;
    }
    *c.p++ = MAGIC;
    *c.p++ = VERSION;
    *c.p++ = msg->type;
    *c.p++ = msg->flags;
    put_u32 (&c, msg->userid);
    put_u32 (&c, msg->rolemask);
    put_u32 (&c, msg->aux1);
    put_u32 (&c, msg->aux2);
    if (msg->flags & FLUX_MSGFLAG_ROUTE) {
        put_u32 (&c, msg->route_count);
        for (int i = 0; i < msg->route_count; i++)
            put_bytes (&c, msg->routes[i], strlen (msg->routes[i]));
    }
    if (msg->topic)
        put_bytes (&c, msg->topic, strlen (msg->topic));
    if (msg->payload)
        put_bytes (&c, msg->payload->data, msg->payload->size);
    return 0;
}

static int get_u32 (struct cursor *c, uint32_t *np)
{
    uint32_t n;

    if (c->left < 4)
        return -1;
    memcpy (&n, c->p, 4);
    c->p += 4;
    c->left -= 4;
    *np = ntohl (n);
    return 0;
}

static int get_bytes (struct cursor *c, const char **data, size_t *size)
{
    uint32_t n;

    if (get_u32 (c, &n) < 0 || c->left < n)
        return -1;
    *data = (const char *)c->p;
    *size = n;
    c->p += n;
    c->left -= n;
    return 0;
}

/* A NUL terminated copy; NULs within are an error. */
static char *get_string (struct cursor *c)
{
    const char *data;
    size_t size;

    if (get_bytes (c, &data, &size) < 0 || memchr (data, 0, size))
        return NULL;
    return strndup (data, size);
}

static int get_routes (struct cursor *c, flux_msg_t *msg)
{
    uint32_t count;

    if (get_u32 (c, &count) < 0 || count > MAX_ROUTES)
        return -1;
    while (count-- > 0) {
        char *id = get_string (c);
        int rc = id ? flux_msg_route_push (msg, id) : -1;
        free (id);
        if (rc < 0)
            return -1;
    }
    return 0;
}

flux_msg_t *flux_msg_decode (const void *buf, size_t size)
{
    const uint8_t *header = buf;
    flux_msg_t *msg = NULL;
    struct cursor c;

    if (!buf || size < HEADER_SIZE) {
        errno = EINVAL;
        return NULL;
    }
    c = (struct cursor){ .p = (uint8_t *)buf + 4, .left = size - 4 };
    if (header[0] != MAGIC || header[1] != VERSION
        || !message_type_valid (header[2]))
        goto proto;
    if (!(msg = flux_msg_create (header[2])))
        return NULL;
    msg->flags = header[3];
    if (get_u32 (&c, &msg->userid) < 0
        || get_u32 (&c, &msg->rolemask) < 0
        || get_u32 (&c, &msg->aux1) < 0
        || get_u32 (&c, &msg->aux2) < 0)
        goto proto;
    if ((msg->flags & FLUX_MSGFLAG_ROUTE) && get_routes (&c, msg) < 0)
        goto proto;
    if ((msg->flags & FLUX_MSGFLAG_TOPIC) && !(msg->topic = get_string (&c)))
        goto proto;
    if (msg->flags & FLUX_MSGFLAG_PAYLOAD) {
        const char *data;
        size_t len;
        if (get_bytes (&c, &data, &len) < 0 || len == 0)
            goto proto;
        if (!(msg->payload = payload_create (data, len)))
            goto error;
    }
    if (c.left > 0)
        goto proto;
    return msg;
proto:
    errno = EPROTO;
error:
    flux_msg_destroy (msg);
    return NULL;
}

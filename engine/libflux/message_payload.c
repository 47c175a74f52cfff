/* SPDX-License-Identifier: LGPL-3.0-only */
/* message_payload.c - what a message carries: bytes, a string, JSON. */

#include "common/va.h"
#include "message_private.h"

bool flux_msg_has_payload (const flux_msg_t *msg)
{
    return msg && msg->payload;
}

static void replace_payload (flux_msg_t *msg, struct payload *payload)
{
    payload_decref (msg->payload);
    json_decref (msg->json);
    msg->json = NULL;
    msg->payload = payload;
    if (payload)
        msg->flags |= FLUX_MSGFLAG_PAYLOAD;
    else
        msg->flags &= ~FLUX_MSGFLAG_PAYLOAD;
}

int flux_msg_set_payload (flux_msg_t *msg, const void *buf, size_t size)
{
    struct payload *payload = NULL;

    if (!msg) {
        errno = EINVAL;
        return -1;
    }
    if (buf && size > 0 && !(payload = payload_create (buf, size)))
        return -1;
    replace_payload (msg, payload);
    return 0;
}

int flux_msg_get_payload (const flux_msg_t *msg, const void **buf,
                          size_t *size)
{
    if (!msg || !msg->payload) {
        errno = msg ? EPROTO : EINVAL;
        return -1;
    }
    if (buf)
        *buf = msg->payload->data;
    if (size)
        *size = msg->payload->size;
    return 0;
}

int flux_msg_set_string (flux_msg_t *msg, const char *s)
{
    return flux_msg_set_payload (msg, s, s ? strlen (s) + 1 : 0);
}

/* A string on the wire includes its NUL; no payload is a NULL string. */
int flux_msg_get_string (const flux_msg_t *msg, const char **s)
{
    const char *result = NULL;

    if (!msg) {
        errno = EINVAL;
        return -1;
    }
    if (msg->payload) {
        result = msg->payload->data;
        if (result[msg->payload->size - 1] != '\0') {
            errno = EPROTO;
            return -1;
        }
    }
    if (s)
        *s = result;
    return 0;
}

/* Write JSON straight into a payload: no second copy of the text. */
static struct payload *payload_from_json (const json_t *o)
{
    size_t size = json_dumpb (o, NULL, 0, JSON_COMPACT);
    struct payload *payload;

    if (size == 0) {
        errno = EINVAL;
        return NULL;
    }
    if (!(payload = malloc (sizeof (*payload) + size + 1)))
        return NULL;
    payload->refcount = 1;
    payload->size = size + 1;
    json_dumpb (o, payload->data, size, JSON_COMPACT);
    payload->data[size] = '\0';
    return payload;
}

int flux_msg_vpack (flux_msg_t *msg, const char *fmt, va_list ap)
{
    json_t *o = msg && fmt && *fmt ? json_vpack_ex (NULL, 0, fmt, ap) : NULL;
    struct payload *payload = json_is_object (o) ? payload_from_json (o) : NULL;

    if (payload)
        replace_payload (msg, payload);
    else if (!json_is_object (o))
        errno = EINVAL;
    json_decref (o);
    return payload ? 0 : -1;
}

int flux_msg_pack (flux_msg_t *msg, const char *fmt, ...)
{
    return VA (fmt, flux_msg_vpack (msg, fmt, ap));
}

int flux_msg_vunpack (const flux_msg_t *cmsg, const char *fmt, va_list ap)
{
    flux_msg_t *msg = (flux_msg_t *)cmsg;
    const char *text;

    if (!msg || !fmt || *fmt == '\0') {
        errno = EINVAL;
        return -1;
    }
    if (!msg->json) {
        if (flux_msg_get_string (msg, &text) < 0)
            return -1;
        if (text)
            msg->json = json_loadb (text, msg->payload->size - 1,
                                    JSON_ALLOW_NUL, NULL);
        if (msg->json && !json_is_object (msg->json)) {
            json_decref (msg->json);
            msg->json = NULL;
        }
    }
    if (msg->json && json_vunpack_ex (msg->json, NULL, 0, fmt, ap) == 0)
        return 0;
    errno = EPROTO;
    return -1;
}

int flux_msg_unpack (const flux_msg_t *msg, const char *fmt, ...)
{
    return VA (fmt, flux_msg_vunpack (msg, fmt, ap));
}

/* SPDX-License-Identifier: LGPL-3.0-only */
/* message_payload.c - what a message carries: bytes, a string, JSON. */

#include "common/va.h"
#include "libutil/errno_safe.h"
#include "message_private.h"

static void set_lasterr (const flux_msg_t *cmsg, const char *fmt, ...)
{
    flux_msg_t *msg = (flux_msg_t *)cmsg;
    ERRNO_SAFE_BLOCK;
    char *text = NULL;

    if (fmt && VA (fmt, vasprintf (&text, fmt, ap)) < 0)
        text = NULL;
    free (msg->lasterr);
    msg->lasterr = text;
}

const char *flux_msg_last_error (const flux_msg_t *msg)
{
    if (!msg)
        return "message is NULL";
    return msg->lasterr ? msg->lasterr : "";
}

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
    struct payload *payload;
    json_error_t error;
    json_t *o = NULL;

    if (!msg || !fmt || !*fmt) {
        errno = EINVAL;
        return -1;
    }
    set_lasterr (msg, NULL);
    if (!(o = json_vpack_ex (&error, 0, fmt, ap))) {
        set_lasterr (msg, "%s", error.text);
        goto inval;
    }
    if (!json_is_object (o)) {
        set_lasterr (msg, "no JSON object to send");
        goto inval;
    }
    if (!(payload = payload_from_json (o))) {
        set_lasterr (msg, "cannot encode JSON: %s", strerror (errno));
        goto error;
    }
    replace_payload (msg, payload);
    json_decref (o);
    return 0;
inval:
    errno = EINVAL;
error:
    json_decref (o);
    return -1;
}

int flux_msg_pack (flux_msg_t *msg, const char *fmt, ...)
{
    return VA (fmt, flux_msg_vpack (msg, fmt, ap));
}

static int parse_payload (flux_msg_t *msg)
{
    const char *text;
    json_error_t error;
    json_t *o = NULL;

    if (flux_msg_get_string (msg, &text) < 0) {
        set_lasterr (msg, "the payload does not end with a NUL");
        return -1;
    }
    if (text)
        o = json_loadb (text, msg->payload->size - 1, JSON_ALLOW_NUL, &error);
    if (json_is_object (o)) {
        msg->json = o;
        return 0;
    }
    set_lasterr (msg,
                 "%s",
                 o || !text ? "no JSON object in the payload" : error.text);
    json_decref (o);
    errno = EPROTO;
    return -1;
}

int flux_msg_vunpack (const flux_msg_t *msg, const char *fmt, va_list ap)
{
    json_error_t error;
    int rc = 0;

    if (!msg || !fmt || *fmt == '\0') {
        errno = EINVAL;
        return -1;
    }
    set_lasterr (msg, NULL);
    if (!msg->json)
        rc = parse_payload ((flux_msg_t *)msg);
    if (rc == 0 && (rc = json_vunpack_ex (msg->json, &error, 0, fmt, ap)) < 0) {
        set_lasterr (msg, "%s", error.text);
        errno = EPROTO;
    }
    return rc;
}

int flux_msg_unpack (const flux_msg_t *msg, const char *fmt, ...)
{
    return VA (fmt, flux_msg_vunpack (msg, fmt, ap));
}

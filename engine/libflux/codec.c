/* SPDX-License-Identifier: LGPL-3.0-only */
/* codec.c - requests, responses and events: encode, decode, respond. */

#include <flux/core.h>

#include "common/va.h"

enum { REQUEST = FLUX_MSGTYPE_REQUEST, EVENT = FLUX_MSGTYPE_EVENT };

static int fail (int errnum)
{
    errno = errnum;
    return -1;
}

/* Encode */

static flux_msg_t *encode (int type, const char *topic, const void *data,
                           size_t len)
{
    flux_msg_t *msg = topic ? flux_msg_create (type) : NULL;

    if (!topic)
        errno = EINVAL;
    if (msg) {
        flux_msg_route_enable (msg);
        if (flux_msg_set_topic (msg, topic) == 0
            && (!data || flux_msg_set_payload (msg, data, len) == 0))
            return msg;
        flux_msg_decref (msg);
    }
    return NULL;
}

flux_msg_t *flux_request_encode (const char *topic, const char *s)
{
    return encode (REQUEST, topic, s, s ? strlen (s) + 1 : 0);
}

flux_msg_t *flux_request_encode_raw (const char *topic, const void *data,
                                     size_t len)
{
    return encode (REQUEST, topic, data, len);
}

flux_msg_t *flux_event_encode (const char *topic, const char *s)
{
    return encode (EVENT, topic, s, s ? strlen (s) + 1 : 0);
}

flux_msg_t *flux_event_encode_raw (const char *topic, const void *data,
                                   size_t len)
{
    return encode (EVENT, topic, data, len);
}

/* Decode */

/* Check the type, and get the topic if the caller wants it. */
static int begin (const flux_msg_t *msg, int type, const char **topicp)
{
    const char *topic;
    int actual;

    if (flux_msg_get_type (msg, &actual) < 0)
        return -1;
    if (actual != type)
        return fail (EPROTO);
    return flux_msg_get_topic (msg, topicp ? topicp : &topic);
}

static int unpack (const flux_msg_t *msg, int type, const char **topic,
                   const char *fmt, va_list ap)
{
    if (!fmt)
        return fail (EINVAL);
    return begin (msg, type, topic) < 0 ? -1 : flux_msg_vunpack (msg, fmt, ap);
}

int flux_request_unpack (const flux_msg_t *msg, const char **topic,
                         const char *fmt, ...)
{
    return VA (fmt, unpack (msg, REQUEST, topic, fmt, ap));
}

int flux_event_unpack (const flux_msg_t *msg, const char **topic,
                       const char *fmt, ...)
{
    return VA (fmt, unpack (msg, EVENT, topic, fmt, ap));
}

int flux_request_decode (const flux_msg_t *msg, const char **topic,
                         const char **s)
{
    return begin (msg, REQUEST, topic) < 0 ? -1 : flux_msg_get_string (msg, s);
}

int flux_event_decode (const flux_msg_t *msg, const char **topic,
                       const char **s)
{
    return begin (msg, EVENT, topic) < 0 ? -1 : flux_msg_get_string (msg, s);
}

/* Without a payload *data is NULL. */
int flux_request_decode_raw (const flux_msg_t *msg, const char **topic,
                             const void **data, size_t *len)
{
    if (!data || !len)
        return fail (EINVAL);
    if (begin (msg, REQUEST, topic) < 0)
        return -1;
    *data = NULL;
    *len = 0;
    return flux_msg_has_payload (msg) ? flux_msg_get_payload (msg, data, len)
                                      : 0;
}

/* A response that is an error sets errno to that. */
int flux_response_decode (const flux_msg_t *msg, const char **topic,
                          const char **s)
{
    int errnum;

    if (!msg)
        return fail (EINVAL);
    if (flux_msg_get_errnum (msg, &errnum) < 0)
        return -1;
    if (errnum != 0)
        return fail (errnum);
    if (begin (msg, FLUX_MSGTYPE_RESPONSE, topic) < 0)
        return -1;
    return s ? flux_msg_get_string (msg, s) : 0;
}

int flux_response_decode_error (const flux_msg_t *msg, const char **errstr)
{
    const char *s = NULL;
    int errnum;

    if (!msg || !errstr)
        return fail (EINVAL);
    if (flux_msg_get_errnum (msg, &errnum) < 0
        || (errnum != 0 && flux_msg_get_string (msg, &s) < 0))
        return -1;
    return s ? (*errstr = s, 0) : fail (ENOENT);
}

/* Respond */

/* A copy keeps topic, routes and matchtag of the request. */
flux_msg_t *flux_response_derive (const flux_msg_t *request, int errnum)
{
    struct flux_msg_cred cred = { FLUX_USERID_UNKNOWN, FLUX_ROLE_NONE };
    flux_msg_t *msg;
    uint32_t tag;

    if (!request || flux_msg_is_noresponse (request)) {
        errno = EINVAL;
        return NULL;
    }
    if (flux_msg_get_matchtag (request, &tag) < 0
        || !(msg = flux_msg_copy (request, false)))
        return NULL;
    flux_msg_set_type (msg, FLUX_MSGTYPE_RESPONSE);
    flux_msg_set_matchtag (msg, tag);
    flux_msg_set_errnum (msg, errnum);
    flux_msg_set_cred (msg, cred);
    return msg;
}

/* The payload is s, or without s what fmt packs. */
static int respond (flux_t *h, const flux_msg_t *request, int errnum,
                    const char *s, const char *fmt, va_list *ap)
{
    flux_msg_t *msg;

    if (!h || !request)
        return fail (EINVAL);
    if (flux_msg_is_noresponse (request))
        return 0;
    if (!(msg = flux_response_derive (request, errnum)))
        return -1;
    if ((fmt ? flux_msg_vpack (msg, fmt, *ap)
             : flux_msg_set_string (msg, s)) == 0
        && flux_send_new (h, &msg, 0) == 0)
        return 0;
    flux_msg_decref (msg);
    return -1;
}

int flux_respond (flux_t *h, const flux_msg_t *request, const char *s)
{
    return respond (h, request, 0, s, NULL, NULL);
}

int flux_respond_pack (flux_t *h, const flux_msg_t *request,
                       const char *fmt, ...)
{
    return fmt ? VA (fmt, respond (h, request, 0, NULL, fmt, &ap))
               : fail (EINVAL);
}

int flux_respond_error (flux_t *h, const flux_msg_t *request, int errnum,
                        const char *errstr)
{
    return respond (h, request, errnum ? errnum : EINVAL, errstr, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only */
/* codec.c - requests, responses, events and control messages: encode, decode,
 * respond.
 */

#include <flux/core.h>

#include "common/va.h"

static flux_msg_t *encode (int type, const char *topic, const void *data,
                           size_t len)
{
    flux_msg_t *msg;

    if (!topic) {
        errno = EINVAL;
        return NULL;
    }
    if (!(msg = flux_msg_create (type)))
        return NULL;
    flux_msg_route_enable (msg);
    if (flux_msg_set_topic (msg, topic) < 0
        || (data && flux_msg_set_payload (msg, data, len) < 0)) {
        flux_msg_decref (msg);
        return NULL;
    }
    return msg;
}

static flux_msg_t *encode_string (int type, const char *topic, const char *s)
{
    return encode (type, topic, s, s ? strlen (s) + 1 : 0);
}

static int check (const flux_msg_t *msg, int type, const char **topic)
{
    const char *s;
    int actual;

    if (flux_msg_get_type (msg, &actual) < 0)
        return -1;
    if (actual != type) {
        errno = EPROTO;
        return -1;
    }
    if (flux_msg_get_topic (msg, &s) < 0)
        return -1;
    if (topic)
        *topic = s;
    return 0;
}

/* No payload is no error, but NULL. */
static int get_raw (const flux_msg_t *msg, const void **data, size_t *len)
{
    *data = NULL;
    *len = 0;
    return flux_msg_has_payload (msg) ? flux_msg_get_payload (msg, data, len)
                                      : 0;
}

static int decode_raw (const flux_msg_t *msg, int type, const char **topic,
                       const void **data, size_t *len)
{
    if (!data || !len) {
        errno = EINVAL;
        return -1;
    }
    if (check (msg, type, topic) < 0)
        return -1;
    return get_raw (msg, data, len);
}

static int decode_json (const flux_msg_t *msg, int type, const char **topic,
                        const char *fmt, va_list ap)
{
    if (!fmt) {
        errno = EINVAL;
        return -1;
    }
    if (check (msg, type, topic) < 0)
        return -1;
    return flux_msg_vunpack (msg, fmt, ap);
}

/* Requests */

flux_msg_t *flux_request_encode (const char *topic, const char *s)
{
    return encode_string (FLUX_MSGTYPE_REQUEST, topic, s);
}

flux_msg_t *flux_request_encode_raw (const char *topic, const void *data,
                                     size_t len)
{
    return encode (FLUX_MSGTYPE_REQUEST, topic, data, len);
}

int flux_request_decode (const flux_msg_t *msg, const char **topic,
                         const char **s)
{
    if (check (msg, FLUX_MSGTYPE_REQUEST, topic) < 0)
        return -1;
    return flux_msg_get_string (msg, s);
}

int flux_request_decode_raw (const flux_msg_t *msg, const char **topic,
                             const void **data, size_t *len)
{
    return decode_raw (msg, FLUX_MSGTYPE_REQUEST, topic, data, len);
}

int flux_request_unpack (const flux_msg_t *msg, const char **topic,
                         const char *fmt, ...)
{
    return VA (fmt, decode_json (msg, FLUX_MSGTYPE_REQUEST, topic, fmt, ap));
}

/* Responses */

static int response_check (const flux_msg_t *msg, const char **topic)
{
    int errnum;

    if (!msg) {
        errno = EINVAL;
        return -1;
    }
    if (flux_msg_get_errnum (msg, &errnum) < 0)
        return -1;
    if (errnum) {
        errno = errnum;
        return -1;
    }
    return check (msg, FLUX_MSGTYPE_RESPONSE, topic);
}

int flux_response_decode (const flux_msg_t *msg, const char **topic,
                          const char **s)
{
    if (response_check (msg, topic) < 0)
        return -1;
    return s ? flux_msg_get_string (msg, s) : 0;
}

int flux_response_decode_error (const flux_msg_t *msg, const char **errstr)
{
    const char *s = NULL;
    int errnum;

    if (!msg || !errstr) {
        errno = EINVAL;
        return -1;
    }
    if (flux_msg_get_errnum (msg, &errnum) < 0
        || (errnum && flux_msg_get_string (msg, &s) < 0))
        return -1;
    if (!s) {
        errno = ENOENT;
        return -1;
    }
    *errstr = s;
    return 0;
}

flux_msg_t *flux_response_derive (const flux_msg_t *request, int errnum)
{
    flux_msg_t *response = NULL;
    uint32_t tag;

    if (!request || flux_msg_is_noresponse (request))
        errno = EINVAL;
    else if (flux_msg_get_matchtag (request, &tag) == 0
             && (response = flux_msg_copy (request, false))) {
        // the topic and the way back are those of the request, the rest is not
        flux_msg_set_type (response, FLUX_MSGTYPE_RESPONSE);
        flux_msg_set_errnum (response, errnum);
        flux_msg_set_matchtag (response, tag);
        flux_msg_set_rolemask (response, FLUX_ROLE_NONE);
        flux_msg_set_userid (response, FLUX_USERID_UNKNOWN);
    }
    return response;
}

/* Each of the respond functions: is there anything to do?  1, 0, or -1 */
static int respond_begin (flux_t *h, const flux_msg_t *request, int errnum,
                          flux_msg_t **msg)
{
    if (!h || !request) {
        errno = EINVAL;
        return -1;
    }
    if (flux_msg_is_noresponse (request))
        return 0;
    return (*msg = flux_response_derive (request, errnum)) ? 1 : -1;
}

static int respond_end (flux_t *h, flux_msg_t *msg, int rc)
{
    if (rc < 0 || flux_send_new (h, &msg, 0) < 0) {
        flux_msg_decref (msg);
        return -1;
    }
    return 0;
}

int flux_respond (flux_t *h, const flux_msg_t *request, const char *s)
{
    flux_msg_t *msg;
    int rc = respond_begin (h, request, 0, &msg);

    return rc <= 0 ? rc : respond_end (h, msg, flux_msg_set_string (msg, s));
}

int flux_respond_pack (flux_t *h, const flux_msg_t *request,
                       const char *fmt, ...)
{
    flux_msg_t *msg;
    int rc;

    if (!fmt) {
        errno = EINVAL;
        return -1;
    }
    if ((rc = respond_begin (h, request, 0, &msg)) <= 0)
        return rc;
    rc = VA (fmt, flux_msg_vpack (msg, fmt, ap));
    return respond_end (h, msg, rc);
}

int flux_respond_error (flux_t *h, const flux_msg_t *request, int errnum,
                        const char *errstr)
{
    flux_msg_t *msg;
    int rc = respond_begin (h, request, errnum ? errnum : EINVAL, &msg);

    return rc <= 0 ? rc
                   : respond_end (h, msg, flux_msg_set_string (msg, errstr));
}

/* Events */

flux_msg_t *flux_event_encode (const char *topic, const char *s)
{
    return encode_string (FLUX_MSGTYPE_EVENT, topic, s);
}

flux_msg_t *flux_event_encode_raw (const char *topic, const void *data,
                                   size_t len)
{
    return encode (FLUX_MSGTYPE_EVENT, topic, data, len);
}

int flux_event_decode (const flux_msg_t *msg, const char **topic,
                       const char **s)
{
    if (check (msg, FLUX_MSGTYPE_EVENT, topic) < 0)
        return -1;
    return flux_msg_get_string (msg, s);
}

int flux_event_unpack (const flux_msg_t *msg, const char **topic,
                       const char *fmt, ...)
{
    return VA (fmt, decode_json (msg, FLUX_MSGTYPE_EVENT, topic, fmt, ap));
}

/* Control messages */

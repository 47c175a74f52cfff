/* SPDX-License-Identifier: LGPL-3.0-only */
/* codec.h - requests, responses, events, control messages; encode, decode,
 * respond, subscribe, publish.
 */
#ifndef SOLO_FLUX_CODEC_H
#define SOLO_FLUX_CODEC_H

#include "handle.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Requests. */
flux_msg_t *flux_request_encode (const char *topic, const char *s);
flux_msg_t *flux_request_encode_raw (const char *topic, const void *data,
                                     size_t len);
int flux_request_decode (const flux_msg_t *msg, const char **topic,
                         const char **s);
int flux_request_decode_raw (const flux_msg_t *msg, const char **topic,
                             const void **data, size_t *len);
int flux_request_unpack (const flux_msg_t *msg, const char **topic,
                         const char *fmt, ...);

/* Responses. */
flux_msg_t *flux_response_derive (const flux_msg_t *request, int errnum);
int flux_response_decode (const flux_msg_t *msg, const char **topic,
                          const char **s);
int flux_response_decode_error (const flux_msg_t *msg, const char **errstr);
int flux_respond (flux_t *h, const flux_msg_t *request, const char *s);
int flux_respond_pack (flux_t *h, const flux_msg_t *request,
                       const char *fmt, ...);
int flux_respond_error (flux_t *h, const flux_msg_t *request, int errnum,
                        const char *errstr);

/* Events. */
enum event_flags { FLUX_EVENT_PRIVATE = 1 };

flux_msg_t *flux_event_encode (const char *topic, const char *s);
flux_msg_t *flux_event_encode_raw (const char *topic, const void *data,
                                   size_t len);
int flux_event_decode (const flux_msg_t *msg, const char **topic,
                       const char **s);
int flux_event_unpack (const flux_msg_t *msg, const char **topic,
                       const char *fmt, ...);
int flux_event_subscribe (flux_t *h, const char *topic);
int flux_event_unsubscribe (flux_t *h, const char *topic);
flux_future_t *flux_event_subscribe_ex (flux_t *h, const char *topic,
                                        int flags);
flux_future_t *flux_event_publish (flux_t *h, const char *topic, int flags,
                                   const char *s);
flux_future_t *flux_event_publish_pack (flux_t *h, const char *topic,
                                        int flags, const char *fmt, ...);
flux_future_t *flux_event_publish_raw (flux_t *h, const char *topic, int flags,
                                       const void *data, size_t len);

#ifdef __cplusplus
}
#endif
#endif

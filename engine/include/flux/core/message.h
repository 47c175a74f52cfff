/* SPDX-License-Identifier: LGPL-3.0-only */
/* message.h - messages, and lists of messages. */
#ifndef SOLO_FLUX_MESSAGE_H
#define SOLO_FLUX_MESSAGE_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    FLUX_MSGTYPE_REQUEST = 1,
    FLUX_MSGTYPE_RESPONSE = 2,
    FLUX_MSGTYPE_EVENT = 4,
    FLUX_MSGTYPE_CONTROL = 8,
    FLUX_MSGTYPE_ANY = 15,
    FLUX_MSGTYPE_MASK = 15,
};

enum {
    FLUX_MSGFLAG_TOPIC = 1,
    FLUX_MSGFLAG_PAYLOAD = 2,
    FLUX_MSGFLAG_NORESPONSE = 4,
    FLUX_MSGFLAG_ROUTE = 8,
    FLUX_MSGFLAG_UPSTREAM = 16,
    FLUX_MSGFLAG_PRIVATE = 32,
    FLUX_MSGFLAG_STREAMING = 64,
    FLUX_MSGFLAG_USER1 = 128,
};

enum { FLUX_NODEID_UPSTREAM = 0xfffffffe, FLUX_NODEID_ANY = 0xffffffff };
enum { FLUX_MATCHTAG_NONE = 0 };
enum { FLUX_USERID_UNKNOWN = 0xffffffff };

enum {
    FLUX_ROLE_NONE = 0,
    FLUX_ROLE_OWNER = 1,
    FLUX_ROLE_USER = 2,
    FLUX_ROLE_LOCAL = 4,
    FLUX_ROLE_ADMIN = 8,
    FLUX_ROLE_ALL = 0xffffffff,
};
#define FLUX_ROLE_PRIVILEGED (FLUX_ROLE_OWNER | FLUX_ROLE_ADMIN)

struct flux_msg_cred {
    uint32_t userid;
    uint32_t rolemask;
};

/* What to receive: types, a response's matchtag, a topic glob (NULL: any). */
struct flux_match {
    int typemask;
    uint32_t matchtag;
    const char *topic_glob;
};

struct flux_match flux_match_init (int typemask, uint32_t matchtag,
                                   const char *topic_glob);
void flux_match_free (struct flux_match m);

#define FLUX_MATCH_OF(type) flux_match_init ((type), FLUX_MATCHTAG_NONE, NULL)
#define FLUX_MATCH_ANY FLUX_MATCH_OF (FLUX_MSGTYPE_ANY)
#define FLUX_MATCH_EVENT FLUX_MATCH_OF (FLUX_MSGTYPE_EVENT)
#define FLUX_MATCH_REQUEST FLUX_MATCH_OF (FLUX_MSGTYPE_REQUEST)
#define FLUX_MATCH_RESPONSE FLUX_MATCH_OF (FLUX_MSGTYPE_RESPONSE)

/* Life time.  destroy is decref. */
flux_msg_t *flux_msg_create (int type);
flux_msg_t *flux_msg_copy (const flux_msg_t *msg, bool payload);
const flux_msg_t *flux_msg_incref (const flux_msg_t *msg);
void flux_msg_decref (const flux_msg_t *msg);
void flux_msg_destroy (flux_msg_t *msg);
void *flux_msg_aux_get (const flux_msg_t *msg, const char *name);
int flux_msg_aux_set (const flux_msg_t *msg, const char *name, void *aux,
                      flux_free_f destroy);

/* Wire form. */
ssize_t flux_msg_encode_size (const flux_msg_t *msg);
int flux_msg_encode (const flux_msg_t *msg, void *buf, size_t size);
flux_msg_t *flux_msg_decode (const void *buf, size_t size);

/* Fields. */
int flux_msg_get_type (const flux_msg_t *msg, int *type);
int flux_msg_set_type (flux_msg_t *msg, int type);
const char *flux_msg_typestr (int type);
int flux_msg_get_topic (const flux_msg_t *msg, const char **topic);
int flux_msg_set_topic (flux_msg_t *msg, const char *topic);
int flux_msg_get_nodeid (const flux_msg_t *msg, uint32_t *nodeid);
int flux_msg_set_nodeid (flux_msg_t *msg, uint32_t nodeid);
int flux_msg_get_errnum (const flux_msg_t *msg, int *errnum);
int flux_msg_set_errnum (flux_msg_t *msg, int errnum);
int flux_msg_set_seq (flux_msg_t *msg, uint32_t seq);
int flux_msg_get_matchtag (const flux_msg_t *msg, uint32_t *matchtag);
int flux_msg_set_matchtag (flux_msg_t *msg, uint32_t matchtag);

/* Flags. */
int flux_msg_set_flag (flux_msg_t *msg, int flag);
bool flux_msg_is_private (const flux_msg_t *msg);
int flux_msg_set_private (flux_msg_t *msg);
bool flux_msg_is_streaming (const flux_msg_t *msg);
int flux_msg_set_streaming (flux_msg_t *msg);
bool flux_msg_is_noresponse (const flux_msg_t *msg);
int flux_msg_set_noresponse (flux_msg_t *msg);

/* Credentials. */
int flux_msg_get_userid (const flux_msg_t *msg, uint32_t *userid);
int flux_msg_set_userid (flux_msg_t *msg, uint32_t userid);
int flux_msg_get_rolemask (const flux_msg_t *msg, uint32_t *rolemask);
int flux_msg_set_rolemask (flux_msg_t *msg, uint32_t rolemask);
int flux_msg_get_cred (const flux_msg_t *msg, struct flux_msg_cred *cred);
int flux_msg_set_cred (flux_msg_t *msg, struct flux_msg_cred cred);
int flux_msg_cred_authorize (struct flux_msg_cred cred, uint32_t userid);
int flux_msg_authorize (const flux_msg_t *msg, uint32_t userid);

/* Payload.  Pointers handed out belong to the message. */
bool flux_msg_has_payload (const flux_msg_t *msg);
int flux_msg_get_payload (const flux_msg_t *msg, const void **buf,
                          size_t *size);
int flux_msg_set_payload (flux_msg_t *msg, const void *buf, size_t size);
int flux_msg_get_string (const flux_msg_t *msg, const char **s);
int flux_msg_set_string (flux_msg_t *msg, const char *s);
int flux_msg_pack (flux_msg_t *msg, const char *fmt, ...);
int flux_msg_vpack (flux_msg_t *msg, const char *fmt, va_list ap);
int flux_msg_unpack (const flux_msg_t *msg, const char *fmt, ...);
int flux_msg_vunpack (const flux_msg_t *msg, const char *fmt, va_list ap);
const char *flux_msg_last_error (const flux_msg_t *msg);

/* Routes: "first" is where a request came from, "last" its latest hop. */
void flux_msg_route_enable (flux_msg_t *msg);
int flux_msg_route_push (flux_msg_t *msg, const char *id);
int flux_msg_route_delete_last (flux_msg_t *msg);
const char *flux_msg_route_first (const flux_msg_t *msg);
const char *flux_msg_route_last (const flux_msg_t *msg);
int flux_msg_route_count (const flux_msg_t *msg);
char *flux_msg_route_string (const flux_msg_t *msg);
bool flux_msg_route_match_first (const flux_msg_t *msg1,
                                 const flux_msg_t *msg2);

/* Matching. */
bool flux_msg_cmp_matchtag (const flux_msg_t *msg, uint32_t matchtag);
bool flux_msg_cmp (const flux_msg_t *msg, struct flux_match match);

/* Lists.  The list holds a reference of each message; pop hands it over. */
struct flux_msglist *flux_msglist_create (void);
void flux_msglist_destroy (struct flux_msglist *l);
int flux_msglist_append (struct flux_msglist *l, const flux_msg_t *msg);
void flux_msglist_delete (struct flux_msglist *l);
const flux_msg_t *flux_msglist_pop (struct flux_msglist *l);
const flux_msg_t *flux_msglist_first (struct flux_msglist *l);
const flux_msg_t *flux_msglist_next (struct flux_msglist *l);
const flux_msg_t *flux_msglist_last (struct flux_msglist *l);
int flux_msglist_count (struct flux_msglist *l);

/* Disconnects and cancels of requests kept on a list. */
bool flux_disconnect_match (const flux_msg_t *msg1, const flux_msg_t *msg2);
int flux_msglist_disconnect (struct flux_msglist *l, const flux_msg_t *msg);
bool flux_cancel_match (const flux_msg_t *msg1, const flux_msg_t *msg2);
int flux_msglist_cancel (flux_t *h, struct flux_msglist *l,
                         const flux_msg_t *msg);

#ifdef __cplusplus
}
#endif
#endif

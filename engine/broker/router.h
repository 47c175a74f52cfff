/* SPDX-License-Identifier: LGPL-3.0-only */
/* router.h - what the files of the router share: who exchanges messages
 * (peer.c), which services there are (service.c), what the broker routes
 * (router.c).  Each uses those before it only.
 */
#ifndef SOLO_BROKER_ROUTER_H
#define SOLO_BROKER_ROUTER_H

#include "broker.h"

struct string_set {             // small: searched from its start
    char **items;
    int *uses;
    size_t count;
};

struct notice {                 // sent to a service when the peer goes away
    char *topic;
    flux_msg_t *msg;
};

struct peer {
    struct router *router;
    char id[40];
    uint32_t slot;
    struct flux_msg_cred cred;
    peer_send_f send;
    void *arg;
    bool muted;
    struct string_set subs;
    struct notice *notices;
    size_t notice_count;
    struct flux_msglist *pending;   // requests it owes an answer to
};

struct service {
    char *name;
    struct peer *peer;
};

struct router {
    struct broker *b;
    struct peer **slots;
    uint32_t nslots;
    struct service *services;   // sorted by name
    size_t service_count;
    uint32_t event_seq;
    struct peer *internal;
    flux_t *h_router;           // the router's end of the internal channel
    flux_watcher_t *w;
    flux_msg_handler_t **handlers;
};

/* peer.c
 */

/* A set of strings in which each counts how often it was added.  Removing
 * what is not there fails with ENOENT.
 */
int set_add (struct string_set *set, const char *s);
int set_remove (struct string_set *set, const char *s);
bool set_has_prefix_of (const struct string_set *set, const char *s);

struct peer *peer_lookup (struct router *r, const char *id);
/* The memory of a peer: peer_destroy () sees to all else.
 */
void peer_free (struct peer *p);
/* Takes over *msg when it succeeds.
 */
int peer_deliver (struct peer *p, flux_msg_t **msg);
/* Requests that a process has taken and not answered: it may be killed at
 * any time.  Returns true if the request was noted.
 */
bool pending_add (struct peer *p, const flux_msg_t *msg);
/* Whether this answers one of them; the last answer ends it.
 */
bool pending_answer (struct peer *p, const flux_msg_t *response);
/* Remember to tell the service of 'msg' when the peer goes away.
 */
int notice_arm (struct peer *p, const flux_msg_t *msg);

/* service.c
 */

/* Where the service of this name is, or belongs.
 */
size_t service_position (struct router *r,
                         const char *name,
                         size_t len,
                         bool *found);
void service_drop (struct router *r, size_t pos);

/* router.c
 */

/* The next two functions take over msg.
 */
void route_request (struct router *r, flux_msg_t *msg);
int router_publish (struct router *r, flux_msg_t *msg, uint32_t *seq);

#endif // !SOLO_BROKER_ROUTER_H

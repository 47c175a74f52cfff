/* SPDX-License-Identifier: LGPL-3.0-only */
/* router.c - carry messages between clients, modules and the broker.
 *
 * A request from a peer gets the peer's id on its route stack and goes to
 * the service that its topic names; the response finds its way back by the
 * same stack.  Events get a sequence number and go to whoever subscribed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "router.h"

/* Routing
 */

/* 'nodeid' names one of the made-up nodes: they are all here.
 */
static int send_request (struct router *r, flux_msg_t **msg)
{
    const char *topic;
    uint32_t nodeid;
    size_t pos;
    bool found;

    if (flux_msg_get_topic (*msg, &topic) < 0
        || flux_msg_get_nodeid (*msg, &nodeid) < 0)
        return -1;
    if (nodeid != FLUX_NODEID_ANY && nodeid >= r->b->size) {
        errno = EHOSTUNREACH;
        return -1;
    }
    pos = service_position (r, topic, strcspn (topic, "."), &found);
    if (!found) {
        errno = ENOSYS;
        return -1;
    }
    struct peer *p = r->services[pos].peer;
    bool noted = pending_add (p, *msg);
    if (peer_deliver (p, msg) < 0) {
        if (noted) {
            ERRNO_SAFE_BLOCK;
            (void)flux_msglist_last (p->pending);
            flux_msglist_delete (p->pending);
        }
        return -1;
    }
    return 0;
}

void route_request (struct router *r, flux_msg_t *msg)
{
    char buf[256];
    const char *text = NULL;
    const char *topic;

    if (send_request (r, &msg) == 0)
        return;
    if (errno == ENOSYS && flux_msg_get_topic (msg, &topic) == 0) {
        snprintf (buf,
                  sizeof (buf),
                  "No service matching %s is registered",
                  topic);
        text = buf;
        errno = ENOSYS;
    }
    if (!flux_msg_is_noresponse (msg))
        (void)flux_respond_error (r->b->h, msg, errno, text);
    flux_msg_decref (msg);
}

static void route_response (struct router *r, flux_msg_t *msg)
{
    struct peer *p = r->internal;

    if (flux_msg_route_count (msg) > 0) {
        if (!(p = peer_lookup (r, flux_msg_route_last (msg)))
            || flux_msg_route_delete_last (msg) < 0)
            p = NULL;           // it has gone: nobody waits for this
    }
    if (!p || peer_deliver (p, &msg) < 0)
        flux_msg_decref (msg);
}

static bool event_allowed (struct peer *p, const flux_msg_t *msg)
{
    uint32_t userid;

    if ((p->cred.rolemask & FLUX_ROLE_OWNER) || !flux_msg_is_private (msg))
        return true;
    return flux_msg_get_userid (msg, &userid) == 0
           && userid == p->cred.userid;
}

/* Number the event and hand a copy to each subscriber.  Takes over msg.
 */
int router_publish (struct router *r, flux_msg_t *msg, uint32_t *seq)
{
    const char *topic;

    if (flux_msg_get_topic (msg, &topic) < 0
        || flux_msg_set_seq (msg, r->event_seq + 1) < 0) {
        flux_msg_decref (msg);
        return -1;
    }
    r->event_seq++;
    if (seq)
        *seq = r->event_seq;
    for (uint32_t i = 0; i < r->nslots; i++) {
        struct peer *p = r->slots[i];
        flux_msg_t *cpy;

        if (p
            && set_has_prefix_of (&p->subs, topic)
            && event_allowed (p, msg)
            && (cpy = flux_msg_copy (msg, true))) {
            if (peer_deliver (p, &cpy) < 0)
                flux_msg_decref (cpy);
        }
    }
    flux_msg_decref (msg);
    return 0;
}

bool router_subscribed (struct router *r, const char *topic)
{
    for (uint32_t i = 0; i < r->nslots; i++)
        if (r->slots[i] && set_has_prefix_of (&r->slots[i]->subs, topic))
            return true;
    return false;
}

/* A guest cannot choose its credentials.  The owner can, which is how a
 * service speaks for its users and how tests play guests.
 */
static int stamp_cred (struct peer *p, flux_msg_t *msg)
{
    struct flux_msg_cred cred;

    if (flux_msg_get_cred (msg, &cred) < 0)
        return -1;
    if (!(p->cred.rolemask & FLUX_ROLE_OWNER))
        cred = p->cred;
    if (cred.userid == FLUX_USERID_UNKNOWN)
        cred.userid = p->cred.userid;
    if (cred.rolemask == FLUX_ROLE_NONE)
        cred.rolemask = p->cred.rolemask;
    return flux_msg_set_cred (msg, cred);
}

void peer_recv (struct peer *p, flux_msg_t *msg)
{
    struct router *r = p->router;
    int type;

    if (flux_msg_get_type (msg, &type) < 0 || stamp_cred (p, msg) < 0)
        goto drop;
    switch (type) {
        case FLUX_MSGTYPE_REQUEST:
            if (p != r->internal) {
                flux_msg_route_enable (msg);
                if (flux_msg_route_push (msg, p->id) < 0
                    || notice_arm (p, msg) < 0)
                    goto drop;
            }
            route_request (r, msg);
            return;
        case FLUX_MSGTYPE_RESPONSE:
            /* A guest answers what it was asked, and nothing else: matchtags
             * are easily guessed. */
            if (p->pending
                && !pending_answer (p, msg)
                && !(p->cred.rolemask & FLUX_ROLE_OWNER))
                goto drop;
            route_response (r, msg);
            return;
        case FLUX_MSGTYPE_EVENT:
            (void)router_publish (r, msg, NULL);
            return;
    }
drop:
    flux_msg_decref (msg);
}

void peer_destroy (struct peer *p)
{
    ERRNO_SAFE_BLOCK;

    if (!p)
        return;
    struct router *r = p->router;
    const flux_msg_t *msg;

    /* First out of sight: nothing sent below may come back here.
     */
    r->slots[p->slot] = NULL;
    for (size_t i = r->service_count; i > 0; i--)
        if (r->services[i - 1].peer == p)
            service_drop (r, i - 1);
    for (size_t i = 0; i < p->notice_count; i++) {
        route_request (r, p->notices[i].msg);
        free (p->notices[i].topic);
    }
    while (p->pending && (msg = flux_msglist_pop (p->pending))) {
        (void)flux_respond_error (r->b->h,
                                  msg,
                                  EHOSTUNREACH,
                                  "the service went away");
        flux_msg_decref (msg);
    }
    peer_free (p);
}

/* The internal channel: b->h on the one side, the router on the other.
 */

static void internal_cb (flux_reactor_t *reactor,
                         flux_watcher_t *w,
                         int revents,
                         void *arg)
{
    struct router *r = arg;
    flux_msg_t *msg;

    while ((msg = flux_recv (r->h_router, FLUX_MATCH_ANY, FLUX_O_NONBLOCK)))
        peer_recv (r->internal, msg);
}

static int internal_send (void *arg, flux_msg_t **msg)
{
    struct router *r = arg;

    return flux_send_new (r->h_router, msg, 0);
}

struct router *router_create (struct broker *b)
{
    static const char *names[] = {
        "attr", "broker", "config", "event", "log", "module", "service",
    };
    struct flux_msg_cred cred = {
        .userid = b->owner,
        .rolemask = FLUX_ROLE_OWNER | FLUX_ROLE_LOCAL,
    };
    struct router *r;

    if (!(r = calloc (1, sizeof (*r))))
        return NULL;
    r->b = b;
    if (!(r->h_router = flux_open ("interthread://broker", 0))
        || flux_set_reactor (r->h_router, b->reactor) < 0
        || !(b->h = flux_open ("interthread://broker", 0))
        || flux_set_reactor (b->h, b->reactor) < 0
        || !(r->internal = peer_create (r, cred, false, internal_send, r))
        || !(r->w = flux_handle_watcher_create (b->reactor,
                                                r->h_router,
                                                FLUX_POLLIN,
                                                internal_cb,
                                                r)))
        goto error;
    for (size_t i = 0; i < sizeof (names) / sizeof (names[0]); i++)
        if (service_add (r, names[i], r->internal) < 0)
            goto error;
    flux_watcher_start (r->w);
    return r;
error:
    router_destroy (r);
    return NULL;
}

void router_destroy (struct router *r)
{
    ERRNO_SAFE_BLOCK;

    if (!r)
        return;
    flux_msg_handler_delvec (r->handlers);
    flux_watcher_destroy (r->w);
    peer_destroy (r->internal);
    for (size_t i = 0; i < r->service_count; i++)
        free (r->services[i].name);
    free (r->services);
    free (r->slots);
    flux_close (r->b->h);
    r->b->h = NULL;
    flux_close (r->h_router);
    free (r);
}

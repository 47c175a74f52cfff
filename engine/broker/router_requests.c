/* SPDX-License-Identifier: LGPL-3.0-only */
/* router_requests.c - the requests by which a peer offers a service,
 * subscribes to events or publishes one.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"

#include "router.h"

static struct peer *request_peer (struct router *r, const flux_msg_t *msg)
{
    const char *id = flux_msg_route_last (msg);

    return id ? peer_lookup (r, id) : r->internal;
}

static void respond (flux_t *h, const flux_msg_t *msg, int rc)
{
    if (rc == 0)
        respond_ok (h, msg);
    else
        respond_error (h, msg, NULL);
}

static void subscribe_cb (flux_t *h,
                          flux_msg_handler_t *mh,
                          const flux_msg_t *msg,
                          void *arg)
{
    struct router *r = arg;
    struct peer *p = request_peer (r, msg);
    const char *request;
    const char *topic;
    int rc = -1;

    if (!p)
        return;                 // gone before its request was read
    if (flux_request_unpack (msg, &request, "{s:s}", "topic", &topic) == 0) {
        if (!strcmp (request, "event.subscribe"))
            rc = set_add (&p->subs, topic);
        else
            rc = set_remove (&p->subs, topic);
    }
    respond (h, msg, rc);
}

static void publish_cb (flux_t *h,
                        flux_msg_handler_t *mh,
                        const flux_msg_t *msg,
                        void *arg)
{
    struct router *r = arg;
    const char *topic;
    const char *payload = NULL;
    void *data = NULL;
    size_t len = 0;
    int flags;
    struct flux_msg_cred cred;
    flux_msg_t *event = NULL;
    uint32_t seq;

    if (flux_request_unpack (msg,
                             NULL,
                             "{s:s s:i s?s}",
                             "topic", &topic,
                             "flags", &flags,
                             "payload", &payload) < 0
        || flux_msg_get_cred (msg, &cred) < 0)
        goto error;
    if ((flags & ~FLUX_MSGFLAG_PRIVATE)
        || (payload && base64_decode (payload, &data, &len) < 0)) {
        errno = EPROTO;
        goto error;
    }
    if (!(event = flux_event_encode_raw (topic, data, len))
        || flux_msg_set_cred (event, cred) < 0
        || ((flags & FLUX_MSGFLAG_PRIVATE) && flux_msg_set_private (event) < 0))
        goto error;
    free (data);
    data = NULL;
    flux_msg_t *e = event;
    event = NULL;
    if (router_publish (r, e, &seq) < 0)
        goto error;
    respond_pack (h, msg, "{s:i}", "seq", seq);
    return;
error:
    flux_msg_decref (event);
    free (data);
    respond_error (h, msg, NULL);
}

/* Guests may have services whose name begins with their userid.
 */
static int service_allowed (const flux_msg_t *msg, const char *name)
{
    struct flux_msg_cred cred;
    char prefix[16];

    if (flux_msg_get_cred (msg, &cred) < 0)
        return -1;
    snprintf (prefix, sizeof (prefix), "%" PRIu32 "-", cred.userid);
    if ((cred.rolemask & FLUX_ROLE_OWNER)
        || !strncmp (name, prefix, strlen (prefix)))
        return 0;
    errno = EPERM;
    return -1;
}

static void service_cb (flux_t *h,
                        flux_msg_handler_t *mh,
                        const flux_msg_t *msg,
                        void *arg)
{
    struct router *r = arg;
    struct peer *p = request_peer (r, msg);
    const char *request;
    const char *name;
    size_t pos;
    bool found;
    int rc = -1;

    if (!p)
        return;
    if (flux_request_unpack (msg, &request, "{s:s}", "service", &name) < 0
        || service_allowed (msg, name) < 0)
        goto done;
    if (!strcmp (request, "service.add"))
        rc = service_add (r, name, p);
    else {
        pos = service_position (r, name, strlen (name), &found);
        if (!found || r->services[pos].peer != p)
            errno = ENOENT;
        else {
            service_drop (r, pos);
            rc = 0;
        }
    }
done:
    respond (h, msg, rc);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "event.subscribe", subscribe_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "event.unsubscribe", subscribe_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "event.publish", publish_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "service.add", service_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "service.remove", service_cb, FLUX_ROLE_USER },
    FLUX_MSGHANDLER_TABLE_END,
};

int router_serve (struct router *r)
{
    return flux_msg_handler_addvec (r->b->h, htab, r, &r->handlers);
}

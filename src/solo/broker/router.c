/* SPDX-License-Identifier: LGPL-3.0-only */
/* router.c - carry messages between clients, modules and the broker.
 *
 * A request from a peer gets the peer's id on its route stack and goes to
 * the service that its topic names; the response finds its way back by the
 * same stack.  Events get a sequence number and go to whoever subscribed.
 *
 * A peer's id begins with its slot number in eight hex digits, so the way
 * back is an array index and one string comparison.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/base64.h"

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
    struct flux_msglist *deferred;
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

static void route_request (struct router *r, flux_msg_t *msg);

/* String sets
 */

static ssize_t set_find (const struct string_set *set, const char *s)
{
    for (size_t i = 0; i < set->count; i++)
        if (!strcmp (set->items[i], s))
            return i;
    return -1;
}

static int set_add (struct string_set *set, const char *s)
{
    ssize_t i = set_find (set, s);
    char **items;
    int *uses;
    char *cpy;

    if (i >= 0) {
        set->uses[i]++;
        return 0;
    }
    if (!(cpy = strdup (s)))
        return -1;
    if ((items = realloc (set->items, sizeof (*items) * (set->count + 1))))
        set->items = items;
    if ((uses = realloc (set->uses, sizeof (*uses) * (set->count + 1))))
        set->uses = uses;
    if (!items || !uses) {
        free (cpy);
        return -1;
    }
    set->items[set->count] = cpy;
    set->uses[set->count++] = 1;
    return 0;
}

static int set_remove (struct string_set *set, const char *s)
{
    ssize_t i = set_find (set, s);

    if (i < 0) {
        errno = ENOENT;
        return -1;
    }
    if (--set->uses[i] == 0) {
        free (set->items[i]);
        set->count--;
        set->items[i] = set->items[set->count];
        set->uses[i] = set->uses[set->count];
    }
    return 0;
}

static bool set_has_prefix_of (const struct string_set *set, const char *s)
{
    for (size_t i = 0; i < set->count; i++)
        if (!strncmp (set->items[i], s, strlen (set->items[i])))
            return true;
    return false;
}

static void set_clear (struct string_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        free (set->items[i]);
    free (set->items);
    free (set->uses);
    memset (set, 0, sizeof (*set));
}

/* Services
 */

static size_t service_position (struct router *r,
                                const char *name,
                                size_t len,
                                bool *found)
{
    size_t lo = 0;
    size_t hi = r->service_count;

    *found = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        const char *s = r->services[mid].name;
        int cmp = strncmp (name, s, len);

        if (cmp == 0 && s[len] != '\0')
            cmp = -1;
        if (cmp == 0) {
            *found = true;
            return mid;
        }
        if (cmp < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

int service_add (struct router *r, const char *name, struct peer *p)
{
    struct service *services;
    char *cpy;
    bool found;
    size_t pos;

    if (strlen (name) == 0 || strchr (name, '.')) {
        errno = EINVAL;
        return -1;
    }
    pos = service_position (r, name, strlen (name), &found);
    if (found) {
        errno = EEXIST;
        return -1;
    }
    if (!(cpy = strdup (name)))
        return -1;
    if (!(services = realloc (r->services,
                              sizeof (*services) * (r->service_count + 1)))) {
        free (cpy);
        return -1;
    }
    r->services = services;
    memmove (&services[pos + 1],
             &services[pos],
             sizeof (*services) * (r->service_count - pos));
    services[pos] = (struct service){ .name = cpy, .peer = p };
    r->service_count++;
    return 0;
}

static void service_drop (struct router *r, size_t pos)
{
    free (r->services[pos].name);
    r->service_count--;
    memmove (&r->services[pos],
             &r->services[pos + 1],
             sizeof (*r->services) * (r->service_count - pos));
}

json_t *service_list (struct router *r, struct peer *p)
{
    json_t *a = json_array ();

    for (size_t i = 0; a && i < r->service_count; i++)
        if (r->services[i].peer == p)
            json_array_append_new (a, json_string (r->services[i].name));
    return a;
}

/* Peers
 */

const char *peer_id (struct peer *p)
{
    return p->id;
}

static struct peer *peer_lookup (struct router *r, const char *id)
{
    unsigned long slot = id ? strtoul (id, NULL, 16) : 0;

    if (!id
        || slot >= r->nslots
        || !r->slots[slot]
        || strcmp (r->slots[slot]->id, id) != 0)
        return NULL;
    return r->slots[slot];
}

/* A dashed lower case uuid in form, whose first field is the slot.
 */
static int make_id (struct peer *p)
{
    uint16_t x[6];

    if (getrandom (x, sizeof (x), 0) != sizeof (x))
        return -1;
    snprintf (p->id,
              sizeof (p->id),
              "%08" PRIx32 "-%04x-4%03x-8%03x-%04x%04x%04x",
              p->slot, x[0], x[1] & 0xfff, x[2] & 0xfff, x[3], x[4], x[5]);
    return 0;
}

struct peer *peer_create (struct router *r,
                          struct flux_msg_cred cred,
                          bool is_process,
                          peer_send_f send,
                          void *arg)
{
    struct peer *p;
    uint32_t slot = 0;

    while (slot < r->nslots && r->slots[slot])
        slot++;
    if (slot == r->nslots) {
        uint32_t n = r->nslots ? r->nslots * 2 : 64;
        struct peer **slots = realloc (r->slots, sizeof (*slots) * n);
        if (!slots)
            return NULL;
        memset (slots + r->nslots, 0, sizeof (*slots) * (n - r->nslots));
        r->slots = slots;
        r->nslots = n;
    }
    if (!(p = calloc (1, sizeof (*p))))
        return NULL;
    p->router = r;
    p->slot = slot;
    p->cred = cred;
    p->send = send;
    p->arg = arg;
    if (make_id (p) < 0
        || (is_process && !(p->pending = flux_msglist_create ()))) {
        free (p);
        return NULL;
    }
    r->slots[slot] = p;
    return p;
}

void peer_destroy (struct peer *p)
{
    int saved_errno = errno;

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
    free (p->notices);
    while (p->pending && (msg = flux_msglist_pop (p->pending))) {
        (void)flux_respond_error (r->b->h,
                                  msg,
                                  EHOSTUNREACH,
                                  "the service went away");
        flux_msg_decref (msg);
    }
    flux_msglist_destroy (p->pending);
    flux_msglist_destroy (p->deferred);
    set_clear (&p->subs);
    free (p);
    errno = saved_errno;
}

void peer_mute (struct peer *p)
{
    p->muted = true;
}

static int peer_deliver (struct peer *p, flux_msg_t **msg)
{
    if (p->muted) {
        const char *topic;
        int type;

        if (flux_msg_get_type (*msg, &type) < 0
            || type != FLUX_MSGTYPE_RESPONSE
            || flux_msg_get_topic (*msg, &topic) < 0
            || strcmp (topic, "module.status") != 0) {
            errno = ENOSYS;
            return -1;
        }
    }
    if (p->deferred) {
        if (flux_msglist_append (p->deferred, *msg) < 0)
            return -1;
        flux_msg_decref (*msg);
        *msg = NULL;
        return 0;
    }
    return p->send (p->arg, msg);
}

int peer_defer (struct peer *p, bool flag)
{
    struct flux_msglist *l = p->deferred;
    const flux_msg_t *msg;

    if (flag == (l != NULL))
        return 0;
    if (flag)
        return (p->deferred = flux_msglist_create ()) ? 0 : -1;
    p->deferred = NULL;
    while ((msg = flux_msglist_pop (l))) {
        flux_msg_t *m = (flux_msg_t *)msg;
        if (peer_deliver (p, &m) < 0)
            flux_msg_decref (m);
    }
    flux_msglist_destroy (l);
    return 0;
}

/* Requests that a process has taken and not answered: it may be killed at
 * any time.  Only the header is kept.  Returns true if it was noted.
 */
static bool pending_add (struct peer *p, const flux_msg_t *msg)
{
    flux_msg_t *cpy;
    bool added;

    if (!p->pending
        || flux_msg_is_noresponse (msg)
        || !(cpy = flux_msg_copy (msg, false)))
        return false;
    added = flux_msglist_append (p->pending, cpy) == 0;
    flux_msg_decref (cpy);
    return added;
}

static void pending_remove (struct peer *p, const flux_msg_t *response)
{
    const flux_msg_t *msg;
    uint32_t tag, t;
    int errnum;

    if (flux_msg_get_matchtag (response, &tag) < 0
        || (flux_msg_is_streaming (response)
            && flux_msg_get_errnum (response, &errnum) == 0
            && errnum == 0))
        return;
    msg = flux_msglist_first (p->pending);
    while (msg) {
        if (flux_msg_get_matchtag (msg, &t) == 0
            && t == tag
            && flux_msg_route_match_first (msg, response)) {
            flux_msglist_delete (p->pending);
            return;
        }
        msg = flux_msglist_next (p->pending);
    }
}

/* Remember to tell the service of 'msg' when the peer goes away.
 */
static int notice_arm (struct peer *p, const flux_msg_t *msg)
{
    const char *topic;
    const char *dot;
    struct notice *notices;
    flux_msg_t *cpy = NULL;
    char *s = NULL;
    int len;

    if (flux_msg_is_noresponse (msg) || flux_msg_get_topic (msg, &topic) < 0)
        return 0;
    len = (dot = strrchr (topic, '.')) ? dot - topic + 1 : 0;
    for (size_t i = 0; i < p->notice_count; i++)
        if (!strncmp (p->notices[i].topic, topic, len)
            && !strcmp (p->notices[i].topic + len, "disconnect"))
            return 0;
    if (asprintf (&s, "%.*sdisconnect", len, topic) < 0)
        return -1;
    if (!(cpy = flux_msg_copy (msg, false))
        || flux_msg_set_topic (cpy, s) < 0
        || flux_msg_set_noresponse (cpy) < 0
        || !(notices = realloc (p->notices,
                                sizeof (*notices) * (p->notice_count + 1)))) {
        flux_msg_decref (cpy);
        free (s);
        return -1;
    }
    p->notices = notices;
    notices[p->notice_count++] = (struct notice){ .topic = s, .msg = cpy };
    return 0;
}

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
            int saved_errno = errno;
            (void)flux_msglist_last (p->pending);
            flux_msglist_delete (p->pending);
            errno = saved_errno;
        }
        return -1;
    }
    return 0;
}

static void route_request (struct router *r, flux_msg_t *msg)
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
static int publish (struct router *r, flux_msg_t *msg, uint32_t *seq)
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
            if (p->pending)
                pending_remove (p, msg);
            route_response (r, msg);
            return;
        case FLUX_MSGTYPE_EVENT:
            (void)publish (r, msg, NULL);
            return;
    }
drop:
    flux_msg_decref (msg);
}

/* Services of the router itself
 */

static struct peer *request_peer (struct router *r, const flux_msg_t *msg)
{
    const char *id = flux_msg_route_last (msg);

    return id ? peer_lookup (r, id) : r->internal;
}

static void respond (flux_t *h, const flux_msg_t *msg, int rc, const char *text)
{
    if (flux_msg_is_noresponse (msg))
        return;
    if (rc == 0)
        rc = flux_respond (h, msg, NULL);
    else
        rc = flux_respond_error (h, msg, errno, text);
    if (rc < 0)
        flux_log_error (h, "error responding to request");
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
    respond (h, msg, rc, NULL);
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
    if (publish (r, e, &seq) < 0)
        goto error;
    if (!flux_msg_is_noresponse (msg)
        && flux_respond_pack (h, msg, "{s:i}", "seq", seq) < 0)
        flux_log_error (h, "error responding to event.publish");
    return;
error:
    flux_msg_decref (event);
    free (data);
    respond (h, msg, -1, NULL);
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
            errno = found ? EINVAL : ENOENT;
        else {
            service_drop (r, pos);
            rc = 0;
        }
    }
done:
    respond (h, msg, rc, NULL);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "event.subscribe", subscribe_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "event.unsubscribe", subscribe_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "event.publish", publish_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "service.add", service_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "service.remove", service_cb, FLUX_ROLE_USER },
    FLUX_MSGHANDLER_TABLE_END,
};

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
        "state-machine",
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
    if (flux_msg_handler_addvec (b->h, htab, r, &r->handlers) < 0)
        goto error;
    flux_watcher_start (r->w);
    return r;
error:
    router_destroy (r);
    return NULL;
}

void router_destroy (struct router *r)
{
    int saved_errno = errno;

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
    errno = saved_errno;
}

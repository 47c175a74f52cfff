/* SPDX-License-Identifier: LGPL-3.0-only */
/* dispatch.c - message handlers: each message that a handle receives goes to
 *
 *   a response with a matchtag: the handler of that tag;
 *   a request: the newest handler of exactly that topic;
 *   otherwise, the newest handler that matches;
 *   an event: all that match.
 *
 * A request that nobody wants is answered with ENOSYS.  In a clone, what
 * nobody wants goes back to the handle it was cloned from.
 */

#include "libutil/errno_safe.h"
#include "msgq.h"
#include "reactor_private.h"

#define TOPIC_BUCKETS 64
#define MAX_BATCH 32

struct flux_msg_handler {
    struct dispatch *d;
    struct flux_match match;
    uint32_t rolemask;
    flux_msg_handler_f cb;
    void *arg;
    bool running;
    bool dead;                      // on others, waiting to be freed
    flux_msg_handler_t *next;
};

struct dispatch {
    flux_t *h;                      // NULL: handle is gone
    int refcount;                   // handle, handlers, callbacks under way
    flux_watcher_t *w;
    int running;
    int depth;                      // of callbacks under way
    bool have_dead;
    flux_msg_handler_t **by_tag;
    size_t tags_size;
    flux_msg_handler_t *by_topic[TOPIC_BUCKETS];
    flux_msg_handler_t *others;
    struct msgq unmatched;
};

static size_t bucket (const char *topic)
{
    uint32_t hash = 2166136261u;

    for (; *topic; topic++)
        hash = (hash ^ (unsigned char)*topic) * 16777619u;
    return hash % TOPIC_BUCKETS;
}

static void handler_free (flux_msg_handler_t *mh)
{
    flux_match_free (mh->match);
    free (mh);
}

/* Put back what was not for us, in the order in which it came. */
static void requeue_unmatched (struct dispatch *d)
{
    for (size_t i = d->unmatched.count; i > 0; i--) {
        size_t pos = (d->unmatched.head + i - 1) & (d->unmatched.size - 1);
        flux_requeue (d->h, d->unmatched.ring[pos], FLUX_RQ_HEAD);
    }
    msgq_clear (&d->unmatched);
}

static void dispatch_decref (struct dispatch *d)
{
    if (--d->refcount == 0) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (d->w);
        msgq_clear (&d->unmatched);
        free (d->by_tag);
        free (d);
    }
}

/* The handle goes; handlers may live on and are then without effect. */
static void handle_gone (void *arg)
{
    struct dispatch *d = arg;

    requeue_unmatched (d);
    flux_watcher_destroy (d->w);
    d->w = NULL;
    d->h = NULL;
    dispatch_decref (d);
}

static void sweep (struct dispatch *d)
{
    flux_msg_handler_t **slot = &d->others;

    if (d->depth > 0 || !d->have_dead)
        return;
    while (*slot) {
        flux_msg_handler_t *mh = *slot;
        if (mh->dead) {
            *slot = mh->next;
            handler_free (mh);
        }
        else
            slot = &mh->next;
    }
    d->have_dead = false;
}

static void call_handler (flux_msg_handler_t *mh, const flux_msg_t *msg)
{
    uint32_t rolemask;
    int type;

    if (flux_msg_get_rolemask (msg, &rolemask) < 0)
        return;
    if (rolemask & mh->rolemask) {
        mh->cb (mh->d->h, mh, msg, mh->arg);
        return;
    }
    flux_msg_get_type (msg, &type);
    if (type == FLUX_MSGTYPE_REQUEST)
        flux_respond_error (mh->d->h, msg, EPERM,
                            mh->rolemask == FLUX_ROLE_OWNER
                            ? "Request requires owner credentials"
                            : "Request of somebody who may not");
}

static flux_msg_handler_t *find_single (struct dispatch *d,
                                        const flux_msg_t *msg, int type)
{
    flux_msg_handler_t *mh = NULL;
    const char *topic;
    uint32_t tag;

    if (type == FLUX_MSGTYPE_RESPONSE) {
        if (flux_msg_get_matchtag (msg, &tag) == 0
            && tag < d->tags_size
            && (mh = d->by_tag[tag])
            && !(mh->running && flux_msg_cmp (msg, mh->match)))
            mh = NULL;
    }
    else if (type == FLUX_MSGTYPE_REQUEST) {
        if (flux_msg_get_topic (msg, &topic) == 0) {
            mh = d->by_topic[bucket (topic)];
            while (mh && !(mh->running && !strcmp (mh->match.topic_glob, topic)))
                mh = mh->next;
        }
    }
    return mh;
}

static bool dispatch_message (struct dispatch *d, const flux_msg_t *msg,
                              int type)
{
    flux_msg_handler_t *mh = find_single (d, msg, type);
    bool match = false;

    if (mh) {
        call_handler (mh, msg);
        return true;
    }
    for (mh = d->others; mh && d->h; mh = mh->next) {
        if (!mh->running || mh->dead || !flux_msg_cmp (msg, mh->match))
            continue;
        call_handler (mh, msg);
        if (type != FLUX_MSGTYPE_EVENT)
            return true;
        match = true;
    }
    return match;
}

/* A future that was destroyed early could not free its matchtag: the last
 * response to it does.
 */
static void reclaim_matchtag (flux_t *h, const flux_msg_t *msg)
{
    uint32_t tag;
    int errnum;

    if (flux_msg_route_count (msg) > 0
        || flux_msg_get_matchtag (msg, &tag) < 0
        || flux_msg_get_errnum (msg, &errnum) < 0
        || (flux_msg_is_streaming (msg) && errnum == 0))
        return;
    flux_matchtag_free (h, tag);
}

static void unmatched (struct dispatch *d, flux_msg_t *msg, int type)
{
    const char *topic = "unknown";
    char errmsg[256];

    if (flux_flags_get (d->h) & FLUX_O_CLONE) {
        if (msgq_push_back (&d->unmatched, msg) == 0)
            flux_msg_incref (msg);
    }
    else if (type == FLUX_MSGTYPE_REQUEST) {
        flux_msg_get_topic (msg, &topic);
        snprintf (errmsg, sizeof (errmsg),
                  "Unknown service method '%s'", topic);
        flux_respond_error (d->h, msg, ENOSYS, errmsg);
    }
    else if (type == FLUX_MSGTYPE_RESPONSE)
        reclaim_matchtag (d->h, msg);
}

static void dispatch_one (struct dispatch *d, flux_msg_t *msg)
{
    int type;

    d->depth++;
    flux_msg_get_type (msg, &type);
    if (!dispatch_message (d, msg, type) && d->h)
        unmatched (d, msg, type);
    flux_msg_decref (msg);
    d->depth--;
    sweep (d);
}

/* Some messages in one go save turns of the loop; but a continuation, or the
 * end of the loop, does not wait for them.
 */
static void handle_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                       void *arg)
{
    struct dispatch *d = arg;
    unsigned int serial = reactor_serial (r);

    if (revents & FLUX_POLLERR) {
        flux_reactor_stop_error (r);
        return;
    }
    d->refcount++;
    for (int i = 0; i < MAX_BATCH && d->running > 0 && d->h
                    && reactor_serial (r) == serial; i++) {
        flux_msg_t *msg = flux_recv (d->h, FLUX_MATCH_ANY, FLUX_O_NONBLOCK);
        if (!msg) {
            if (errno != EAGAIN)
                flux_reactor_stop_error (r);
            break;
        }
        dispatch_one (d, msg);
    }
    dispatch_decref (d);
}

static struct dispatch *dispatch_get (flux_t *h)
{
    struct dispatch *d = flux_aux_get (h, "flux::dispatch");

    if (d)
        return d;
    if (!(d = calloc (1, sizeof (*d))))
        return NULL;
    d->refcount = 1;
    d->h = h;
    if (!(d->w = flux_handle_watcher_create (flux_get_reactor (h), h,
                                             FLUX_POLLIN, handle_cb, d))
        || flux_aux_set (h, "flux::dispatch", d, handle_gone) < 0) {
        dispatch_decref (d);
        return NULL;
    }
    return d;
}

int flux_dispatch_requeue (flux_t *h)
{
    struct dispatch *d;

    if (!h) {
        errno = EINVAL;
        return -1;
    }
    if ((flux_flags_get (h) & FLUX_O_CLONE)
        && (d = flux_aux_get (h, "flux::dispatch")))
        requeue_unmatched (d);
    return 0;
}

/* Handlers */

/* Where a handler belongs: its list, or a slot of by_tag. */
static bool has_tag (const struct flux_match *match)
{
    return match->typemask == FLUX_MSGTYPE_RESPONSE
           && match->matchtag != FLUX_MATCHTAG_NONE;
}

static flux_msg_handler_t **handler_list (struct dispatch *d,
                                          const struct flux_match *match)
{
    const char *topic = match->topic_glob;

    if (match->typemask == FLUX_MSGTYPE_REQUEST
        && topic && *topic && !strpbrk (topic, "*?["))
        return &d->by_topic[bucket (topic)];
    return &d->others;
}

static int reserve_tag (struct dispatch *d, uint32_t tag)
{
    size_t size = d->tags_size ? d->tags_size : 32;
    flux_msg_handler_t **by_tag;

    if (tag < d->tags_size) {
        if (!d->by_tag[tag])
            return 0;
        errno = EEXIST;
        return -1;
    }
    while (size <= tag)
        size *= 2;
    if (!(by_tag = realloc (d->by_tag, size * sizeof (*by_tag))))
        return -1;
    memset (by_tag + d->tags_size, 0,
            (size - d->tags_size) * sizeof (*by_tag));
    d->by_tag = by_tag;
    d->tags_size = size;
    return 0;
}

flux_msg_handler_t *flux_msg_handler_create (flux_t *h,
                                             const struct flux_match match,
                                             flux_msg_handler_f cb, void *arg)
{
    flux_msg_handler_t *mh;
    struct dispatch *d;

    if (!h || !cb) {
        errno = EINVAL;
        return NULL;
    }
    if (!(d = dispatch_get (h)) || !(mh = calloc (1, sizeof (*mh))))
        return NULL;
    mh->d = d;
    mh->match = match;
    mh->rolemask = FLUX_ROLE_OWNER;
    mh->cb = cb;
    mh->arg = arg;
    if (match.topic_glob && !(mh->match.topic_glob = strdup (match.topic_glob)))
        goto error;
    if (has_tag (&match)) {
        if (reserve_tag (d, match.matchtag) < 0)
            goto error;
        d->by_tag[match.matchtag] = mh;
    }
    else {
        flux_msg_handler_t **list = handler_list (d, &match);
        mh->next = *list;
        *list = mh;
    }
    d->refcount++;
    return mh;
error:
    handler_free (mh);
    return NULL;
}

void flux_msg_handler_destroy (flux_msg_handler_t *mh)
{
    flux_msg_handler_t **slot;
    struct dispatch *d;

    if (!mh)
        return;
    d = mh->d;
    flux_msg_handler_stop (mh);
    if (has_tag (&mh->match)) {
        d->by_tag[mh->match.matchtag] = NULL;
        handler_free (mh);
    }
    else if ((slot = handler_list (d, &mh->match)) == &d->others) {
        mh->dead = d->have_dead = true;
        sweep (d);
    }
    else {
        while (*slot != mh)
            slot = &(*slot)->next;
        *slot = mh->next;
        handler_free (mh);
    }
    dispatch_decref (d);
}

void flux_msg_handler_start (flux_msg_handler_t *mh)
{
    if (!mh->running) {
        mh->running = true;
        if (mh->d->running++ == 0)
            flux_watcher_start (mh->d->w);
    }
}

void flux_msg_handler_stop (flux_msg_handler_t *mh)
{
    if (mh && mh->running) {
        mh->running = false;
        if (--mh->d->running == 0)
            flux_watcher_stop (mh->d->w);
    }
}

void flux_msg_handler_allow_rolemask (flux_msg_handler_t *mh, uint32_t rolemask)
{
    if (mh)
        mh->rolemask |= rolemask;
}

/* Tables of handlers */

void flux_msg_handler_delvec (flux_msg_handler_t *handlers[])
{
    if (handlers) {
        ERRNO_SAFE_BLOCK;
        for (int i = 0; handlers[i]; i++) {
            flux_msg_handler_destroy (handlers[i]);
            handlers[i] = NULL;
        }
        free (handlers);
    }
}

/* The handler of a line of a table, started.
 */
static flux_msg_handler_t *handler_of (flux_t *h, const char *service_name,
                                       const struct flux_msg_handler_spec *spec,
                                       void *arg)
{
    struct flux_match match = FLUX_MATCH_OF (spec->typemask);
    flux_msg_handler_t *mh;
    char *full = NULL;

    match.topic_glob = spec->topic_glob;
    if (service_name) {
        if (asprintf (&full, "%s.%s", service_name, spec->topic_glob) < 0)
            return NULL;
        match.topic_glob = full;
    }
    if ((mh = flux_msg_handler_create (h, match, spec->cb, arg))) {
        flux_msg_handler_allow_rolemask (mh, spec->rolemask);
        flux_msg_handler_start (mh);
    }
    free (full);
    return mh;
}

/* A line without a callback is the last.
 */
int flux_msg_handler_addvec_ex (flux_t *h, const char *service_name,
                                const struct flux_msg_handler_spec tab[],
                                void *arg, flux_msg_handler_t **hp[])
{
    flux_msg_handler_t **made;
    size_t n = 0;

    if (!hp || !tab || !h) {
        errno = EINVAL;
        return -1;
    }
    while (tab[n].cb || tab[n].typemask || tab[n].topic_glob || tab[n].rolemask)
        n++;
    if (!(made = calloc (n + 1, sizeof (*made))))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (!(made[i] = handler_of (h, service_name, &tab[i], arg))) {
            flux_msg_handler_delvec (made);
            return -1;
        }
    }
    *hp = made;
    return 0;
}

int flux_msg_handler_addvec (flux_t *h,
                             const struct flux_msg_handler_spec tab[],
                             void *arg, flux_msg_handler_t **hp[])
{
    return flux_msg_handler_addvec_ex (h, NULL, tab, arg, hp);
}

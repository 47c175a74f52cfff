/* SPDX-License-Identifier: LGPL-3.0-only */
/* dispatch.c - message handlers: which of them gets a message.
 *
 *   a response with a matchtag: the handler of that tag;
 *   a request: the newest handler of exactly that topic;
 *   otherwise, the newest handler that matches;
 *   an event: all handlers that match.
 *
 * A request without a handler fails with ENOSYS.  A clone gives messages
 * without a handler back to the handle that it was cloned from.
 */

#include "libutil/errno_safe.h"
#include "msgq.h"
#include "reactor_private.h"

#define MAX_BATCH 32

struct flux_msg_handler {
    struct dispatch *d;
    struct flux_match match;
    uint32_t rolemask;
    flux_msg_handler_f cb;
    void *arg;
    bool exact;                     // of requests of one topic
    bool running;
    bool dead;                      // destroyed during a callback
    flux_msg_handler_t *next;
};

struct dispatch {
    flux_t *h;                      // NULL once the handle is destroyed
    int refcount;                   // of handle, handlers, handle_cb()
    flux_watcher_t *w;
    int running;                    // handlers
    int depth;                      // of callbacks under way
    flux_msg_handler_t *list;       // the exact ones first
    flux_msg_handler_t **by_tag;
    size_t tags_size;
    struct msgq unmatched;          // of a clone
};

static void requeue (struct dispatch *d)
{
    struct msgq *q = &d->unmatched;

    for (size_t i = q->count; i > 0; i--)   // the last to the head first
        flux_requeue (d->h, q->ring[(q->head + i - 1) & (q->size - 1)],
                      FLUX_RQ_HEAD);
    msgq_clear (q);
}

static void decref (struct dispatch *d)
{
    if (--d->refcount == 0) {
        ERRNO_SAFE_BLOCK;
        msgq_clear (&d->unmatched);
        free (d->by_tag);
        free (d);
    }
}

static void handler_free (flux_msg_handler_t *mh)
{
    flux_match_free (mh->match);
    free (mh);
}

/* Free destroyed handlers, unless a callback may be looking at the list. */
static void sweep (struct dispatch *d)
{
    for (flux_msg_handler_t **p = &d->list; *p && d->depth == 0;) {
        flux_msg_handler_t *mh = *p;
        if (mh->dead) {
            *p = mh->next;
            handler_free (mh);
        }
        else
            p = &mh->next;
    }
}

/* Handlers may outlive the handle, without effect. */
static void handle_gone (void *arg)
{
    struct dispatch *d = arg;

    requeue (d);
    flux_watcher_destroy (d->w);
    d->h = NULL;
    d->w = NULL;
    decref (d);
}

/* Messages */

static void call (flux_msg_handler_t *mh, const flux_msg_t *msg, int type)
{
    uint32_t rolemask = 0;

    flux_msg_get_rolemask (msg, &rolemask);
    if (rolemask & mh->rolemask)
        mh->cb (mh->d->h, mh, msg, mh->arg);
    else if (type == FLUX_MSGTYPE_REQUEST)
        flux_respond_error (mh->d->h, msg, EPERM,
                            mh->rolemask == FLUX_ROLE_OWNER
                            ? "Request requires owner credentials"
                            : "Request of somebody who may not");
}

static bool wants (flux_msg_handler_t *mh, const flux_msg_t *msg,
                   const char *topic)
{
    if (!mh->running)
        return false;
    if (mh->exact)
        return topic && !strcmp (mh->match.topic_glob, topic);
    return flux_msg_cmp (msg, mh->match);
}

/* Returns whether there was a handler. */
static bool call_handlers (struct dispatch *d, const flux_msg_t *msg, int type)
{
    flux_msg_handler_t *mh;
    const char *topic = NULL;
    bool found = false;
    uint32_t tag;

    if (type == FLUX_MSGTYPE_RESPONSE
        && flux_msg_get_matchtag (msg, &tag) == 0 && tag < d->tags_size
        && (mh = d->by_tag[tag]) && wants (mh, msg, NULL)) {
        call (mh, msg, type);
        return true;
    }
    if (type == FLUX_MSGTYPE_REQUEST)
        flux_msg_get_topic (msg, &topic);
    for (mh = d->list; mh && d->h; mh = mh->next) {
        if (wants (mh, msg, topic)) {
            call (mh, msg, type);
            found = true;
            if (type != FLUX_MSGTYPE_EVENT)
                break;
        }
    }
    return found;
}

/* The last response to a future that is destroyed frees its matchtag. */
static void free_tag (flux_t *h, const flux_msg_t *msg)
{
    uint32_t tag;
    int errnum;

    if (flux_msg_route_count (msg) <= 0
        && flux_msg_get_matchtag (msg, &tag) == 0
        && flux_msg_get_errnum (msg, &errnum) == 0
        && (errnum != 0 || !flux_msg_is_streaming (msg)))
        flux_matchtag_free (h, tag);
}

static void no_handler (struct dispatch *d, flux_msg_t *msg, int type)
{
    const char *topic = "unknown";
    char text[256];

    if (flux_flags_get (d->h) & FLUX_O_CLONE) {
        if (msgq_push_back (&d->unmatched, msg) == 0)
            flux_msg_incref (msg);
    }
    else if (type == FLUX_MSGTYPE_RESPONSE)
        free_tag (d->h, msg);
    else if (type == FLUX_MSGTYPE_REQUEST) {
        flux_msg_get_topic (msg, &topic);
        snprintf (text, sizeof (text), "Unknown service method '%s'", topic);
        flux_respond_error (d->h, msg, ENOSYS, text);
    }
}

/* Several messages share a turn of the loop, until a continuation waits or the
 * loop is to end.
 */
static void handle_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                       void *arg)
{
    struct dispatch *d = arg;
    unsigned int serial = reactor_serial (r);
    bool failed = revents & FLUX_POLLERR;
    flux_msg_t *msg;
    int type;

    d->refcount++;
    for (int i = 0; !failed && i < MAX_BATCH && d->running > 0 && d->h
                    && reactor_serial (r) == serial; i++) {
        if (!(msg = flux_recv (d->h, FLUX_MATCH_ANY, FLUX_O_NONBLOCK))) {
            failed = errno != EAGAIN;
            break;
        }
        flux_msg_get_type (msg, &type);
        d->depth++;
        if (!call_handlers (d, msg, type) && d->h)
            no_handler (d, msg, type);
        d->depth--;
        flux_msg_decref (msg);
        sweep (d);
    }
    if (failed)
        flux_reactor_stop_error (r);
    decref (d);
}

static struct dispatch *get_dispatch (flux_t *h)
{
    struct dispatch *d = flux_aux_get (h, "flux::dispatch");

    if (d || !(d = calloc (1, sizeof (*d))))
        return d;
    d->h = h;
    d->refcount = 1;
    if ((d->w = flux_handle_watcher_create (flux_get_reactor (h), h,
                                            FLUX_POLLIN, handle_cb, d))
        && flux_aux_set (h, "flux::dispatch", d, handle_gone) == 0)
        return d;
    flux_watcher_destroy (d->w);
    decref (d);
    return NULL;
}

int flux_dispatch_requeue (flux_t *h)
{
    struct dispatch *d;

    if (!h) {
        errno = EINVAL;
        return -1;
    }
    if ((d = flux_aux_get (h, "flux::dispatch")))
        requeue (d);
    return 0;
}

/* Handlers */

static bool has_tag (const struct flux_match *match)
{
    return match->typemask == FLUX_MSGTYPE_RESPONSE
           && match->matchtag != FLUX_MATCHTAG_NONE;
}

static int add_by_tag (struct dispatch *d, flux_msg_handler_t *mh)
{
    uint32_t tag = mh->match.matchtag;
    size_t size = d->tags_size ? d->tags_size : 32;
    flux_msg_handler_t **by_tag = d->by_tag;

    while (size <= tag)
        size *= 2;
    if (size > d->tags_size) {
        if (!(by_tag = realloc (by_tag, size * sizeof (*by_tag))))
            return -1;
        memset (by_tag + d->tags_size, 0,
                (size - d->tags_size) * sizeof (*by_tag));
        d->by_tag = by_tag;
        d->tags_size = size;
    }
    if (by_tag[tag]) {
        errno = EEXIST;
        return -1;
    }
    by_tag[tag] = mh;
    return 0;
}

flux_msg_handler_t *flux_msg_handler_create (flux_t *h,
                                             const struct flux_match match,
                                             flux_msg_handler_f cb, void *arg)
{
    const char *topic = match.topic_glob;
    flux_msg_handler_t *mh, **p;
    struct dispatch *d;

    if (!h || !cb) {
        errno = EINVAL;
        return NULL;
    }
    if (!(d = get_dispatch (h)) || !(mh = calloc (1, sizeof (*mh))))
        return NULL;
    *mh = (flux_msg_handler_t) {
        .d = d, .match = match, .rolemask = FLUX_ROLE_OWNER, .cb = cb,
        .arg = arg,
    };
    if ((topic && !(mh->match.topic_glob = strdup (topic)))
        || (has_tag (&match) && add_by_tag (d, mh) < 0)) {
        ERRNO_SAFE (handler_free (mh));
        return NULL;
    }
    if (!has_tag (&match)) {
        mh->exact = match.typemask == FLUX_MSGTYPE_REQUEST
                    && topic && *topic && !strpbrk (topic, "*?[");
        for (p = &d->list; !mh->exact && *p && (*p)->exact;)
            p = &(*p)->next;
        mh->next = *p;
        *p = mh;
    }
    d->refcount++;
    return mh;
}

void flux_msg_handler_destroy (flux_msg_handler_t *mh)
{
    struct dispatch *d;

    if (!mh)
        return;
    d = mh->d;
    flux_msg_handler_stop (mh);
    if (has_tag (&mh->match)) {
        d->by_tag[mh->match.matchtag] = NULL;
        handler_free (mh);
    }
    else {
        mh->dead = true;
        sweep (d);
    }
    decref (d);
}

void flux_msg_handler_start (flux_msg_handler_t *mh)
{
    if (!mh->running && mh->d->running++ == 0)
        flux_watcher_start (mh->d->w);
    mh->running = true;
}

void flux_msg_handler_stop (flux_msg_handler_t *mh)
{
    if (!mh)
        return;
    if (mh->running && --mh->d->running == 0)
        flux_watcher_stop (mh->d->w);
    mh->running = false;
}

void flux_msg_handler_allow_rolemask (flux_msg_handler_t *mh, uint32_t rolemask)
{
    if (mh)
        mh->rolemask |= rolemask;
}

/* Tables of handlers */

void flux_msg_handler_delvec (flux_msg_handler_t *handlers[])
{
    ERRNO_SAFE_BLOCK;

    for (int i = 0; handlers && handlers[i]; i++)
        flux_msg_handler_destroy (handlers[i]);
    free (handlers);
}

static flux_msg_handler_t *start_row (flux_t *h, const char *service,
                                      const struct flux_msg_handler_spec *row,
                                      void *arg)
{
    struct flux_match match = FLUX_MATCH_OF (row->typemask);
    flux_msg_handler_t *mh;
    char *topic = NULL;

    if (service && asprintf (&topic, "%s.%s", service, row->topic_glob) < 0)
        return NULL;
    match.topic_glob = topic ? topic : row->topic_glob;
    if ((mh = flux_msg_handler_create (h, match, row->cb, arg))) {
        mh->rolemask |= row->rolemask;
        flux_msg_handler_start (mh);
    }
    ERRNO_SAFE (free (topic));
    return mh;
}

/* The table ends with a row of zeros. */
int flux_msg_handler_addvec_ex (flux_t *h, const char *service_name,
                                const struct flux_msg_handler_spec tab[],
                                void *arg, flux_msg_handler_t **hp[])
{
    flux_msg_handler_t **handlers;
    size_t n = 0;

    if (!hp || !tab || !h) {
        errno = EINVAL;
        return -1;
    }
    while (tab[n].cb || tab[n].typemask || tab[n].topic_glob || tab[n].rolemask)
        n++;
    if (!(handlers = calloc (n + 1, sizeof (*handlers))))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (!(handlers[i] = start_row (h, service_name, &tab[i], arg))) {
            flux_msg_handler_delvec (handlers);
            return -1;
        }
    }
    *hp = handlers;
    return 0;
}

int flux_msg_handler_addvec (flux_t *h,
                             const struct flux_msg_handler_spec tab[],
                             void *arg, flux_msg_handler_t **hp[])
{
    return flux_msg_handler_addvec_ex (h, NULL, tab, arg, hp);
}

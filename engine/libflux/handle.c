/* SPDX-License-Identifier: LGPL-3.0-only */
/* handle.c - the handle: a connector, and in front of it a queue of messages
 * that were received but put back.
 *
 * A clone (flux_clone(3)) has its own reactor, dispatcher and aux, and uses
 * the connection, queue and matchtags of the handle it was made from: that
 * is how a future is waited for while other messages stay where they are.
 */

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <flux/idset.h>

#include "libutil/errno_safe.h"
#include "aux.h"
#include "errprintf.h"
#include "handle_private.h"
#include "message_private.h"
#include "msgq.h"

struct flux_handle {
    int refcount;
    int flags;
    struct aux_item *aux;
    flux_t *parent;                 // clone: all below is the parent's
    const struct flux_handle_ops *ops;
    void *impl;
    struct msgq queue;
    int queue_fd;                   // eventfd, readable while queue has any
    int pollfd;                     // epoll of queue_fd and the connector's
    struct idset *tags;             // the free ones
    bool closing;
};

static const struct {
    const char *scheme;
    connector_init_f *init;
} connectors[] = {
    { "local", connector_local_init },
    { "interthread", connector_interthread_init },
    { "loop", connector_loop_init },
};

static const int open_flags = FLUX_O_TRACE | FLUX_O_CLONE | FLUX_O_NONBLOCK
                              | FLUX_O_MATCHDEBUG | FLUX_O_TEST_NOSUB
                              | FLUX_O_RPCTRACK | FLUX_O_NOREQUEUE;

static flux_t *base (flux_t *h)
{
    while (h->parent)
        h = h->parent;
    return h;
}

/* Open and close */

static int set_testing_opt (flux_t *h, const char *env, const char *option)
{
    const char *s = getenv (env);
    uint32_t value;

    if (!s)
        return 0;
    value = strtoul (s, NULL, 0);
    return flux_opt_set (h, option, &value, sizeof (value));
}

flux_t *flux_open_ex (const char *uri, int flags, flux_error_t *errp)
{
    flux_error_t error = { 0 };
    const char *path;
    flux_t *h = NULL;

    if (flags & ~open_flags) {
        errno = EINVAL;
        errprintf (errp, "invalid flags specified");
        return NULL;
    }
    // a path such as / or .. means an ancestor; there are none above us
    if (uri && (*uri == '/' || *uri == '.'))
        uri = NULL;
    if (!uri && !(uri = getenv ("FLUX_URI"))) {
        errno = ENOENT;
        errprintf (errp, "FLUX_URI is not set: no Flux instance here");
        return NULL;
    }
    errno = ENOENT;
    errprintf (&error, "Unable to find connector name '%.*s'",
               (int)strcspn (uri, ":"), uri);
    for (size_t i = 0; i < sizeof (connectors) / sizeof (connectors[0]); i++) {
        size_t n = strlen (connectors[i].scheme);
        if (strncmp (uri, connectors[i].scheme, n) || strncmp (uri + n, "://", 3))
            continue;
        path = uri + n + 3;
        error.text[0] = '\0';
        h = connectors[i].init (path, flags, &error);
        break;
    }
    if (h && (set_testing_opt (h, "FLUX_HANDLE_USERID",
                               FLUX_OPT_TESTING_USERID) < 0
              || set_testing_opt (h, "FLUX_HANDLE_ROLEMASK",
                                  FLUX_OPT_TESTING_ROLEMASK) < 0)) {
        flux_close (h);
        h = NULL;
    }
    if (!h)
        errprintf (errp, "%s", *error.text ? error.text : strerror (errno));
    return h;
}

flux_t *flux_open (const char *uri, int flags)
{
    return flux_open_ex (uri, flags, NULL);
}

static struct idset *tags_create (void)
{
    struct idset *tags = idset_create (0, IDSET_FLAG_AUTOGROW
                                          | IDSET_FLAG_INITFULL
                                          | IDSET_FLAG_COUNT_LAZY);

    if (tags)
        idset_clear (tags, FLUX_MATCHTAG_NONE);
    return tags;
}

flux_t *flux_handle_create (void *impl, const struct flux_handle_ops *ops,
                            int flags)
{
    flux_t *h;

    if (!(h = calloc (1, sizeof (*h))))
        return NULL;
    h->refcount = 1;
    h->flags = flags;
    h->queue_fd = h->pollfd = -1;
    if (!(h->tags = tags_create ())) {
        free (h);
        return NULL;
    }
    h->ops = ops;
    h->impl = impl;
    return h;
}

flux_t *flux_clone (flux_t *orig)
{
    flux_t *h;

    if (!orig) {
        errno = EINVAL;
        return NULL;
    }
    if (!(h = calloc (1, sizeof (*h))))
        return NULL;
    h->refcount = 1;
    h->flags = orig->flags | FLUX_O_CLONE;
    h->parent = flux_incref (orig);
    h->queue_fd = h->pollfd = -1;
    return h;
}

/* Destructors of aux may use the handle, but can send no more. */
void flux_handle_destroy (flux_t *h)
{
    ERRNO_SAFE_BLOCK;

    if (!h || --h->refcount > 0 || h->closing)
        return;
    h->closing = true;
    aux_destroy (&h->aux);
    if (h->parent)
        flux_handle_destroy (h->parent);
    else {
        if (h->pollfd >= 0)
            close (h->pollfd);
        if (h->ops->impl_destroy)
            h->ops->impl_destroy (h->impl);
        msgq_clear (&h->queue);
        if (h->queue_fd >= 0)
            close (h->queue_fd);
        idset_destroy (h->tags);
    }
    free (h);
}

void flux_close (flux_t *h)
{
    flux_handle_destroy (h);
}

void flux_decref (flux_t *h)
{
    flux_handle_destroy (h);
}

flux_t *flux_incref (flux_t *h)
{
    if (h)
        h->refcount++;
    return h;
}

static int add_fd (int epfd, int fd)
{
    struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

    return epoll_ctl (epfd, EPOLL_CTL_ADD, fd, &ev);
}

/* Reactor, options and aux items of the handle */

flux_reactor_t *flux_get_reactor (flux_t *h)
{
    flux_reactor_t *r = flux_aux_get (h, "flux::reactor");

    if (!r && h && (r = flux_reactor_create (0))
        && flux_aux_set (h, "flux::reactor", r,
                         (flux_free_f)flux_reactor_decref) < 0) {
        flux_reactor_decref (r);
        r = NULL;
    }
    return r;
}

int flux_set_reactor (flux_t *h, flux_reactor_t *r)
{
    if (flux_aux_get (h, "flux::reactor")) {
        errno = EEXIST;
        return -1;
    }
    return flux_aux_set (h, "flux::reactor", r, NULL);
}

const flux_conf_t *flux_get_conf (flux_t *h)
{
    flux_conf_t *conf = flux_aux_get (h, "flux::conf");

    if (!conf && h && (conf = flux_conf_create ())
        && flux_set_conf_new (h, conf) < 0) {
        flux_conf_decref (conf);
        conf = NULL;
    }
    return conf;
}

int flux_set_conf_new (flux_t *h, const flux_conf_t *conf)
{
    return flux_aux_set (h, "flux::conf", (flux_conf_t *)conf,
                         conf ? (flux_free_f)flux_conf_decref : NULL);
}

void *flux_aux_get (flux_t *h, const char *name)
{
    if (h)
        return aux_get (h->aux, name);
    errno = EINVAL;
    return NULL;
}

int flux_aux_set (flux_t *h, const char *name, void *aux, flux_free_f destroy)
{
    if (h)
        return aux_set (&h->aux, name, aux, destroy);
    errno = EINVAL;
    return -1;
}

int flux_opt_set (flux_t *h, const char *option, const void *val, size_t len)
{
    flux_t *b = h ? base (h) : NULL;

    if (b && option && b->ops->setopt)
        return b->ops->setopt (b->impl, option, val, len);
    errno = EINVAL;
    return -1;
}

int flux_flags_get (flux_t *h)
{
    return h->flags;
}

uint32_t flux_matchtag_alloc (flux_t *h)
{
    unsigned int tag;

    if (!h)
        errno = EINVAL;
    else if (idset_alloc (base (h)->tags, &tag) == 0)
        return tag;
    return FLUX_MATCHTAG_NONE;
}

void flux_matchtag_free (flux_t *h, uint32_t matchtag)
{
    if (h && matchtag != FLUX_MATCHTAG_NONE)
        idset_free (base (h)->tags, matchtag);
}

uint32_t flux_matchtag_avail (flux_t *h)
{
    return h ? idset_count (base (h)->tags) : 0;
}

/* Send and receive */

int flux_send (flux_t *h, const flux_msg_t *msg, int flags)
{
    if (!h || !msg || (flags & ~FLUX_O_NONBLOCK)) {
        errno = EINVAL;
        return -1;
    }
    flags |= h->flags;
    h = base (h);
    if (!h->ops->send || h->closing) {
        errno = ENOSYS;
        return -1;
    }
    return h->ops->send (h->impl, msg, flags);
}

int flux_send_new (flux_t *h, flux_msg_t **msg, int flags)
{
    bool ours = h && msg && *msg && (*msg)->refcount == 1;

    if (!ours) {
        errno = EINVAL;
        return -1;
    }
    if (!base (h)->ops->send_new) {
        if (flux_send (h, *msg, flags) < 0)
            return -1;
        flux_msg_decref (*msg);
        *msg = NULL;
        return 0;
    }
    flags |= h->flags;
    h = base (h);
    if (h->closing) {
        errno = ENOSYS;
        return -1;
    }
    return h->ops->send_new (h->impl, msg, flags);
}

/* Make queue_fd readable, or not, when the queue gets its first message, or
 * loses its last.
 */
static void queue_signal (flux_t *h, size_t count_before)
{
    uint64_t n = 1;
    ssize_t rc = 0;

    if (h->queue_fd < 0 || !count_before == !h->queue.count)
        return;
    if (h->queue.count > 0)
        rc = write (h->queue_fd, &n, sizeof (n));
    else
        rc = read (h->queue_fd, &n, sizeof (n));
    (void)rc;
}

static flux_msg_t *recv_any (flux_t *h, int flags)
{
    size_t before = h->queue.count;
    flux_msg_t *msg;

    if ((msg = msgq_pop (&h->queue))) {
        queue_signal (h, before);
        return msg;
    }
    if (!h->ops->recv) {
        errno = ENOSYS;
        return NULL;
    }
    return h->ops->recv (h->impl, flags);
}

/* Messages that do not match go behind the queue, in their order. */
flux_msg_t *flux_recv (flux_t *h, struct flux_match match, int flags)
{
    struct msgq others = { 0 };
    flux_msg_t *msg, *other;

    if (!h || (flags & ~FLUX_O_NONBLOCK)) {
        errno = EINVAL;
        return NULL;
    }
    flags |= h->flags;
    h = base (h);
    while ((msg = recv_any (h, flags)) && !flux_msg_cmp (msg, match)) {
        if (msgq_push_back (&others, msg) < 0) {
            flux_msg_decref (msg);
            msg = NULL;
            break;
        }
    }
    if (others.count > 0) {
        ERRNO_SAFE_BLOCK;
        while ((other = msgq_pop (&others))) {
            flux_requeue (h, other, FLUX_RQ_TAIL);
            flux_msg_decref (other);
        }
        msgq_clear (&others);
    }
    return msg;
}

int flux_requeue (flux_t *h, const flux_msg_t *msg, int flags)
{
    size_t before;
    int rc;

    if (!h || !msg || (flags != FLUX_RQ_HEAD && flags != FLUX_RQ_TAIL)
        || (base (h)->flags & FLUX_O_NOREQUEUE)) {
        errno = EINVAL;
        return -1;
    }
    h = base (h);
    before = h->queue.count;
    flux_msg_incref (msg);
    if (flags == FLUX_RQ_TAIL)
        rc = msgq_push_back (&h->queue, (flux_msg_t *)msg);
    else
        rc = msgq_push_front (&h->queue, (flux_msg_t *)msg);
    if (rc < 0)
        flux_msg_decref (msg);
    queue_signal (h, before);
    return rc;
}

/* Poll */

int flux_pollfd (flux_t *h)
{
    int epfd = -1;

    if (!h) {
        errno = EINVAL;
        return -1;
    }
    h = base (h);
    if (h->pollfd >= 0)
        return h->pollfd;
    if (h->queue_fd < 0) {
        h->queue_fd = eventfd (h->queue.count > 0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (h->queue_fd < 0)
            return -1;
    }
    if ((epfd = epoll_create1 (EPOLL_CLOEXEC)) < 0
        || add_fd (epfd, h->queue_fd) < 0
        || (h->ops->pollfd && add_fd (epfd, h->ops->pollfd (h->impl)) < 0)) {
        ERRNO_SAFE_BLOCK;
        if (epfd >= 0)
            close (epfd);
        return -1;
    }
    h->pollfd = epfd;
    return epfd;
}

int flux_pollevents (flux_t *h)
{
    int events = 0;

    if (!h) {
        errno = EINVAL;
        return -1;
    }
    h = base (h);
    if (h->ops->pollevents && (events = h->ops->pollevents (h->impl)) < 0)
        return -1;
    return h->queue.count > 0 ? events | FLUX_POLLIN : events;
}

/* SPDX-License-Identifier: LGPL-3.0-only */
/* connector_interthread.c - interthread://NAME, a channel within a process.
 * The first to open a name waits there for the second; a third gets
 * EADDRINUSE.  Messages pass by reference: the sender gives its one up.
 */

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "errprintf.h"
#include "handle_private.h"
#include "message_private.h"
#include "msgq.h"

/* One direction.  fd is readable while there are messages. */
struct lane {
    pthread_mutex_t lock;
    struct msgq queue;
    int fd;
};

struct channel {
    struct channel *next;
    char *name;
    int refcount;           // ends that are open
    struct lane lane[2];
};

struct end {
    struct channel *chan;
    struct lane *tx;
    struct lane *rx;
    struct flux_msg_cred cred;
    char *router;           // our id on the routes of what we send
};

/* The ends of a channel find each other by name, in this list of all threads. */
static struct channel *channels;
static pthread_mutex_t channels_lock = PTHREAD_MUTEX_INITIALIZER;

static void channel_destroy (struct channel *chan)
{
    if (chan) {
        ERRNO_SAFE_BLOCK;
        for (int i = 0; i < 2; i++) {
            msgq_clear (&chan->lane[i].queue);
            if (chan->lane[i].fd >= 0)
                close (chan->lane[i].fd);
            pthread_mutex_destroy (&chan->lane[i].lock);
        }
        free (chan->name);
        free (chan);
    }
}

static struct channel *channel_create (const char *name)
{
    struct channel *chan;
    bool failed = false;

    if (!(chan = calloc (1, sizeof (*chan))))
        return NULL;
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init (&chan->lane[i].lock, NULL);
        chan->lane[i].fd = eventfd (0, EFD_NONBLOCK | EFD_CLOEXEC);
        failed = failed || chan->lane[i].fd < 0;
    }
    if (failed || !(chan->name = strdup (name))) {
        channel_destroy (chan);
        return NULL;
    }
    return chan;
}

/* Join the channel of that name, or make it.  Returns which end (0, 1). */
static int channel_join (const char *name, struct channel **chanp)
{
    struct channel *chan;
    int which = -1;

    pthread_mutex_lock (&channels_lock);
    for (chan = channels; chan; chan = chan->next) {
        if (!strcmp (chan->name, name))
            break;
    }
    if (chan && chan->refcount > 1)
        errno = EADDRINUSE;
    else if (chan)
        which = chan->refcount++;
    else if ((chan = channel_create (name))) {
        chan->next = channels;
        channels = chan;
        which = chan->refcount++;
    }
    pthread_mutex_unlock (&channels_lock);
    *chanp = chan;
    return which;
}

static void channel_leave (struct channel *chan)
{
    struct channel **slot;
    bool last;

    pthread_mutex_lock (&channels_lock);
    if ((last = --chan->refcount == 0)) {
        for (slot = &channels; *slot != chan; slot = &(*slot)->next)
            ;
        *slot = chan->next;
    }
    pthread_mutex_unlock (&channels_lock);
    if (last)
        channel_destroy (chan);
}

/* Note our name on what we send and the channel's on what we receive, as a
 * router does; a response goes back along its routes.
 */
static int route (flux_msg_t *msg, const char *name)
{
    if (msg->type == FLUX_MSGTYPE_RESPONSE)
        return flux_msg_route_delete_last (msg);
    if (msg->type == FLUX_MSGTYPE_CONTROL)
        return 0;
    flux_msg_route_enable (msg);
    return flux_msg_route_push (msg, name);
}

static int op_send_new (void *impl, flux_msg_t **msg, int flags)
{
    struct end *end = impl;
    struct lane *tx = end->tx;
    uint64_t one = 1;
    int rc;

    if ((*msg)->userid == FLUX_USERID_UNKNOWN
        && (*msg)->rolemask == FLUX_ROLE_NONE)
        flux_msg_set_cred (*msg, end->cred);
    if (end->router && route (*msg, end->router) < 0)
        return -1;
    message_detach (*msg);
    pthread_mutex_lock (&tx->lock);
    rc = msgq_push_back (&tx->queue, *msg);
    if (rc == 0 && tx->queue.count == 1
        && write (tx->fd, &one, sizeof (one)) < 0)
        rc = -1;
    pthread_mutex_unlock (&tx->lock);
    if (rc == 0)
        *msg = NULL;
    return rc;
}

static int op_send (void *impl, const flux_msg_t *msg, int flags)
{
    flux_msg_t *cpy = flux_msg_copy (msg, true);

    if (!cpy)
        return -1;
    if (op_send_new (impl, &cpy, flags) < 0) {
        flux_msg_decref (cpy);
        return -1;
    }
    return 0;
}

static flux_msg_t *lane_pop (struct lane *rx)
{
    flux_msg_t *msg;
    uint64_t n;

    pthread_mutex_lock (&rx->lock);
    msg = msgq_pop (&rx->queue);
    if (msg && rx->queue.count == 0 && read (rx->fd, &n, sizeof (n)) < 0)
        errno = 0;  // not signalled: nothing to take back
    pthread_mutex_unlock (&rx->lock);
    return msg;
}

static flux_msg_t *op_recv (void *impl, int flags)
{
    struct end *end = impl;
    flux_msg_t *msg;

    while (!(msg = lane_pop (end->rx))) {
        struct pollfd pfd = { .fd = end->rx->fd, .events = POLLIN };
        if (flags & FLUX_O_NONBLOCK) {
            errno = EAGAIN;
            return NULL;
        }
        if (poll (&pfd, 1, -1) < 0)
            return NULL;
    }
    if (end->router && route (msg, end->chan->name) < 0) {
        flux_msg_decref (msg);
        return NULL;
    }
    return msg;
}

static int op_pollfd (void *impl)
{
    struct end *end = impl;
    return end->rx->fd;
}

static size_t lane_count (struct lane *lane)
{
    size_t count;

    pthread_mutex_lock (&lane->lock);
    count = lane->queue.count;
    pthread_mutex_unlock (&lane->lock);
    return count;
}

static int op_pollevents (void *impl)
{
    struct end *end = impl;
    return FLUX_POLLOUT | (lane_count (end->rx) > 0 ? FLUX_POLLIN : 0);
}

static int op_setopt (void *impl, const char *option, const void *val,
                      size_t size)
{
    struct end *end = impl;
    char *router;

    if (strcmp (option, FLUX_OPT_ROUTER_NAME) || !val) {
        errno = EINVAL;
        return -1;
    }
    if (!(router = strndup (val, size)))
        return -1;
    free (end->router);
    end->router = router;
    return 0;
}

static void op_destroy (void *impl)
{
    struct end *end = impl;

    channel_leave (end->chan);
    free (end->router);
    free (end);
}

static const struct flux_handle_ops ops = {
    .send = op_send,
    .send_new = op_send_new,
    .recv = op_recv,
    .pollfd = op_pollfd,
    .pollevents = op_pollevents,
    .setopt = op_setopt,
    .impl_destroy = op_destroy,
};

flux_t *connector_interthread_init (const char *name, int flags,
                                    flux_error_t *errp)
{
    struct end *end;
    flux_t *h;
    int which;

    if (!(end = calloc (1, sizeof (*end))))
        return NULL;
    if ((which = channel_join (name, &end->chan)) < 0) {
        if (errno == EADDRINUSE)
            errprintf (errp, "interthread://%s: both ends are taken", name);
        free (end);
        return NULL;
    }
    end->tx = &end->chan->lane[which];
    end->rx = &end->chan->lane[!which];
    end->cred.userid = getuid ();
    end->cred.rolemask = FLUX_ROLE_OWNER | FLUX_ROLE_LOCAL;
    if (!(h = flux_handle_create (end, &ops, flags)))
        op_destroy (end);
    return h;
}

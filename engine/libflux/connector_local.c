/* SPDX-License-Identifier: LGPL-3.0-only */
/* connector_local.c - local://PATH, to the broker over its unix socket, and
 * loop://, in which a message comes back to its sender.
 */

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "errprintf.h"
#include "handle_private.h"
#include "msgq.h"
#include "usock.h"

struct conn {
    struct flux_msg_cred cred;      // of messages without credentials
    struct usock *us;               // NULL: loop://
    struct msgq queue;              // of loop://, with a semaphore
    int semaphore;
};

static int conn_fd (void *impl)
{
    struct conn *c = impl;

    return c->us ? usock_fd (c->us) : c->semaphore;
}

/* Returns whether 'events' are ready within the time, in milliseconds. */
static bool wait_for (struct conn *c, short events, int timeout)
{
    struct pollfd pfd = { .fd = conn_fd (c), .events = events };
    int n;

    while ((n = poll (&pfd, 1, timeout)) < 0 && errno == EINTR)
        ;
    return n > 0;
}

/* The broker does not stop reading, so waiting ends. */
static int local_send (struct conn *c, const flux_msg_t *msg)
{
    int rc = usock_send (c->us, msg);

    while (rc == 0 && usock_want_write (c->us))
        rc = wait_for (c, POLLOUT, -1) ? usock_flush (c->us) : -1;
    return rc;
}

static int loop_send (struct conn *c, flux_msg_t *msg)
{
    if (msgq_push_back (&c->queue, msg) < 0
        || eventfd_write (c->semaphore, 1) < 0)
        return -1;
    flux_msg_incref (msg);
    return 0;
}

/* For tests, the owner may send as somebody else. */
static int conn_send (void *impl, const flux_msg_t *msg, int flags)
{
    struct conn *c = impl;
    struct flux_msg_cred cred;
    flux_msg_t *cpy;
    int rc;

    if (c->us && c->cred.userid == FLUX_USERID_UNKNOWN
        && c->cred.rolemask == FLUX_ROLE_NONE)
        return local_send (c, msg);
    if (flux_msg_get_cred (msg, &cred) < 0
        || !(cpy = flux_msg_copy (msg, true)))
        return -1;
    if (c->us || cred.userid == FLUX_USERID_UNKNOWN)
        cred.userid = c->cred.userid;
    if (c->us || cred.rolemask == FLUX_ROLE_NONE)
        cred.rolemask = c->cred.rolemask;
    flux_msg_set_cred (cpy, cred);
    rc = c->us ? local_send (c, cpy) : loop_send (c, cpy);
    flux_msg_decref (cpy);
    return rc;
}

/* To wait on loop:// would be to wait for oneself. */
static flux_msg_t *conn_recv (void *impl, int flags)
{
    struct conn *c = impl;
    flux_msg_t *msg;
    eventfd_t one;

    if (!c->us) {
        if (!(msg = msgq_pop (&c->queue)) || eventfd_read (c->semaphore, &one))
            errno = EAGAIN;
        return msg;
    }
    while (!(msg = usock_recv (c->us)) && errno == EAGAIN) {
        if (usock_read (c->us) < 0)
            return NULL;
        if (usock_has_message (c->us))
            continue;
        errno = EAGAIN;
        if ((flags & FLUX_O_NONBLOCK) || !wait_for (c, POLLIN, -1))
            return NULL;
    }
    return msg;
}

/* The end of a connection counts as readable. */
static int conn_events (void *impl)
{
    struct conn *c = impl;
    bool readable = c->us ? usock_has_message (c->us) || wait_for (c, POLLIN, 0)
                          : c->queue.count > 0;

    return FLUX_POLLOUT | (readable ? FLUX_POLLIN : 0);
}

static int conn_setopt (void *impl, const char *option, const void *val,
                        size_t size)
{
    struct conn *c = impl;
    bool is_userid = !strcmp (option, FLUX_OPT_TESTING_USERID);

    if ((!is_userid && strcmp (option, FLUX_OPT_TESTING_ROLEMASK) != 0)
        || !val || size != sizeof (uint32_t)) {
        errno = EINVAL;
        return -1;
    }
    memcpy (is_userid ? &c->cred.userid : &c->cred.rolemask, val, size);
    return 0;
}

static void conn_destroy (void *impl)
{
    struct conn *c = impl;
    ERRNO_SAFE_BLOCK;

    usock_destroy (c->us);
    msgq_clear (&c->queue);
    if (c->semaphore >= 0)
        close (c->semaphore);
    free (c);
}

static const struct flux_handle_ops ops = {
    .send = conn_send,
    .recv = conn_recv,
    .pollfd = conn_fd,
    .pollevents = conn_events,
    .setopt = conn_setopt,
    .impl_destroy = conn_destroy,
};

static flux_t *open_conn (const char *path, int flags, flux_error_t *errp)
{
    struct conn *c = calloc (1, sizeof (*c));
    flux_t *h = NULL;

    if (!c)
        return NULL;
    c->semaphore = -1;
    c->cred.userid = path ? FLUX_USERID_UNKNOWN : getuid ();
    c->cred.rolemask = path ? FLUX_ROLE_NONE : FLUX_ROLE_OWNER;
    if (path)
        c->us = usock_connect (path, errp);
    else
        c->semaphore = eventfd (0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
    if (conn_fd (c) < 0 || !(h = flux_handle_create (c, &ops, flags)))
        conn_destroy (c);
    return h;
}

flux_t *connector_local_init (const char *path, int flags, flux_error_t *errp)
{
    return open_conn (path, flags, errp);
}

flux_t *connector_loop_init (const char *path, int flags, flux_error_t *errp)
{
    return open_conn (NULL, flags, errp);
}

/* SPDX-License-Identifier: LGPL-3.0-only */
/* connector_local.c - local://PATH, to the broker over its unix socket, and
 * loop://, which gives back what is sent.
 */

#include <poll.h>
#include <unistd.h>
#include <sys/eventfd.h>

#include "libutil/errno_safe.h"
#include "errprintf.h"
#include "handle_private.h"
#include "msgq.h"
#include "usock.h"

struct local {
    struct usock *us;
    struct flux_msg_cred testing;   // owner only: the broker sees to that
};

/* flux_opt_set(3), for both connectors */
static int set_testing (struct flux_msg_cred *cred, const char *option,
                        const void *val, size_t size)
{
    uint32_t *target = NULL;

    if (!strcmp (option, FLUX_OPT_TESTING_USERID))
        target = &cred->userid;
    else if (!strcmp (option, FLUX_OPT_TESTING_ROLEMASK))
        target = &cred->rolemask;
    if (!target || !val || size != sizeof (*target)) {
        errno = EINVAL;
        return -1;
    }
    memcpy (target, val, size);
    return 0;
}

static int wait_fd (struct local *ctx, short events)
{
    struct pollfd pfd = { .fd = usock_fd (ctx->us), .events = events };

    while (poll (&pfd, 1, -1) < 0) {
        if (errno != EINTR)
            return -1;
    }
    return 0;
}

/* The broker always reads, so to wait until all is written is safe. */
static int local_send (void *impl, const flux_msg_t *msg, int flags)
{
    struct local *ctx = impl;
    flux_msg_t *cpy = NULL;
    int rc;

    if (ctx->testing.userid != FLUX_USERID_UNKNOWN
        || ctx->testing.rolemask != FLUX_ROLE_NONE) {
        if (!(cpy = flux_msg_copy (msg, true)))
            return -1;
        flux_msg_set_cred (cpy, ctx->testing);
    }
    rc = usock_send (ctx->us, cpy ? cpy : msg);
    flux_msg_decref (cpy);
    while (rc == 0 && usock_want_write (ctx->us)) {
        if ((rc = wait_fd (ctx, POLLOUT)) == 0)
            rc = usock_flush (ctx->us);
    }
    return rc;
}

static flux_msg_t *local_recv (void *impl, int flags)
{
    struct local *ctx = impl;
    flux_msg_t *msg;

    if ((msg = usock_recv (ctx->us)) || errno != EAGAIN)
        return msg;
    for (;;) {
        if (usock_read (ctx->us) < 0)
            return NULL;
        if ((msg = usock_recv (ctx->us)) || errno != EAGAIN)
            return msg;
        if ((flags & FLUX_O_NONBLOCK) || wait_fd (ctx, POLLIN) < 0)
            return NULL;
    }
}

static int local_pollfd (void *impl)
{
    struct local *ctx = impl;
    return usock_fd (ctx->us);
}

static int local_pollevents (void *impl)
{
    struct local *ctx = impl;
    struct pollfd pfd = { .fd = usock_fd (ctx->us), .events = POLLIN };
    int events = FLUX_POLLOUT;

    if (usock_has_message (ctx->us))
        events |= FLUX_POLLIN;
    else if (poll (&pfd, 1, 0) > 0)     // a hang-up is found by reading
        events |= FLUX_POLLIN;
    return events;
}

static int local_setopt (void *impl, const char *option, const void *val,
                         size_t size)
{
    struct local *ctx = impl;
    return set_testing (&ctx->testing, option, val, size);
}

static void local_destroy (void *impl)
{
    struct local *ctx = impl;

    usock_destroy (ctx->us);
    free (ctx);
}

static const struct flux_handle_ops local_ops = {
    .send = local_send,
    .recv = local_recv,
    .pollfd = local_pollfd,
    .pollevents = local_pollevents,
    .setopt = local_setopt,
    .impl_destroy = local_destroy,
};

flux_t *connector_local_init (const char *path, int flags, flux_error_t *errp)
{
    struct local *ctx;
    flux_t *h;

    if (!(ctx = calloc (1, sizeof (*ctx))))
        return NULL;
    ctx->testing.userid = FLUX_USERID_UNKNOWN;
    if (!(ctx->us = usock_connect (path, errp))
        || !(h = flux_handle_create (ctx, &local_ops, flags))) {
        ERRNO_SAFE (local_destroy (ctx));
        return NULL;
    }
    return h;
}

/* loop:// */

struct loop {
    struct msgq queue;
    int fd;
    struct flux_msg_cred cred;
};

static int loop_send (void *impl, const flux_msg_t *msg, int flags)
{
    struct loop *ctx = impl;
    struct flux_msg_cred cred;
    flux_msg_t *cpy = flux_msg_copy (msg, true);
    uint64_t one = 1;

    if (!cpy)
        return -1;
    flux_msg_get_cred (cpy, &cred);
    if (cred.userid == FLUX_USERID_UNKNOWN)
        cred.userid = ctx->cred.userid;
    if (cred.rolemask == FLUX_ROLE_NONE)
        cred.rolemask = ctx->cred.rolemask;
    flux_msg_set_cred (cpy, cred);
    if (msgq_push_back (&ctx->queue, cpy) < 0) {
        flux_msg_decref (cpy);
        return -1;
    }
    return write (ctx->fd, &one, sizeof (one)) < 0 ? -1 : 0;
}

static flux_msg_t *loop_recv (void *impl, int flags)
{
    struct loop *ctx = impl;
    flux_msg_t *msg = msgq_pop (&ctx->queue);
    uint64_t n;

    // one thread has both ends: to block would be for ever
    if (!msg || read (ctx->fd, &n, sizeof (n)) < 0)
        errno = msg ? errno : EAGAIN;
    return msg;
}

static int loop_pollfd (void *impl)
{
    struct loop *ctx = impl;
    return ctx->fd;
}

static int loop_pollevents (void *impl)
{
    struct loop *ctx = impl;
    return FLUX_POLLOUT | (ctx->queue.count > 0 ? FLUX_POLLIN : 0);
}

static int loop_setopt (void *impl, const char *option, const void *val,
                        size_t size)
{
    struct loop *ctx = impl;
    return set_testing (&ctx->cred, option, val, size);
}

static void loop_destroy (void *impl)
{
    struct loop *ctx = impl;

    msgq_clear (&ctx->queue);
    if (ctx->fd >= 0)
        close (ctx->fd);
    free (ctx);
}

static const struct flux_handle_ops loop_ops = {
    .send = loop_send,
    .recv = loop_recv,
    .pollfd = loop_pollfd,
    .pollevents = loop_pollevents,
    .setopt = loop_setopt,
    .impl_destroy = loop_destroy,
};

flux_t *connector_loop_init (const char *path, int flags, flux_error_t *errp)
{
    struct loop *ctx;
    flux_t *h;

    if (!(ctx = calloc (1, sizeof (*ctx))))
        return NULL;
    ctx->cred.userid = getuid ();
    ctx->cred.rolemask = FLUX_ROLE_OWNER;
    if ((ctx->fd = eventfd (0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE)) < 0
        || !(h = flux_handle_create (ctx, &loop_ops, flags))) {
        loop_destroy (ctx);
        return NULL;
    }
    return h;
}

/* SPDX-License-Identifier: LGPL-3.0-only */
/* client.c - connections on unix stream sockets (see client.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "libflux/usock.h"

#include "client.h"

struct client {
    struct client_server *server;
    struct usock *us;
    flux_watcher_t *r;
    flux_watcher_t *w;
    struct peer *peer;          // a client has one; a module brings its own
    client_recv_f recv_cb;
    client_lost_f lost_cb;
    void *arg;
    bool busy;                  // in a callback: destroy later
    bool dead;
    struct client *next;
};

struct client_server {
    struct broker *b;
    char *path;
    int fd;
    flux_watcher_t *w;
    client_connect_f connect_cb;
    void *arg;
    struct client *clients;
};

static int want_write (struct client *c)
{
    if (usock_want_write (c->us))
        flux_watcher_start (c->w);
    else
        flux_watcher_stop (c->w);
    return 0;
}

int client_send (struct client *c, flux_msg_t **msg)
{
    if (c->dead || usock_send (c->us, *msg) < 0)
        return -1;              // a broken connection shows when it is read
    flux_msg_decref (*msg);
    *msg = NULL;
    return want_write (c);
}

static void client_free (struct client *c)
{
    struct client **p = &c->server->clients;

    while (*p && *p != c)
        p = &(*p)->next;
    if (*p)
        *p = c->next;
    c->dead = true;
    peer_destroy (c->peer);
    flux_watcher_destroy (c->r);
    flux_watcher_destroy (c->w);
    usock_destroy (c->us);
    free (c);
}

void client_destroy (struct client *c)
{
    if (c) {
        ERRNO_SAFE_BLOCK;
        c->dead = true;
        if (!c->busy)
            client_free (c);
    }
}

/* Hand over what has arrived; returns -1 if the connection has ended.
 */
static int client_read (struct client *c)
{
    flux_msg_t *msg;
    int rc;

    rc = usock_read (c->us);
    while (!c->dead && (msg = usock_recv (c->us))) {
        if (c->recv_cb)
            c->recv_cb (c, msg, c->arg);
        else
            flux_msg_decref (msg);
    }
    if (!c->dead && errno != EAGAIN && errno != EWOULDBLOCK)
        rc = -1;                // not a message
    return rc;
}

static void readable (flux_reactor_t *r,
                      flux_watcher_t *w,
                      int revents,
                      void *arg)
{
    struct client *c = arg;

    c->busy = true;
    if (client_read (c) < 0 && !c->dead) {
        if (c->lost_cb)
            c->lost_cb (c, c->arg);
        else
            c->dead = true;
    }
    c->busy = false;
    if (c->dead)
        client_free (c);
}

static void writable (flux_reactor_t *r,
                      flux_watcher_t *w,
                      int revents,
                      void *arg)
{
    struct client *c = arg;

    if (usock_flush (c->us) < 0)
        flux_watcher_stop (c->w);       // reading will tell
    else
        want_write (c);
}

void client_drain (struct client *c)
{
    c->busy = true;
    while (!c->dead && client_read (c) == 0 && usock_has_message (c->us))
        ;
    c->busy = false;
    if (c->dead)
        client_free (c);
}

void client_set_handlers (struct client *c,
                          client_recv_f recv_cb,
                          client_lost_f lost_cb,
                          void *arg)
{
    c->recv_cb = recv_cb;
    c->lost_cb = lost_cb;
    c->arg = arg;
}

/* An ordinary client is a peer of its own.
 */

static int peer_send (void *arg, flux_msg_t **msg)
{
    return client_send (arg, msg);
}

static void peer_message (struct client *c, flux_msg_t *msg, void *arg)
{
    peer_recv (c->peer, msg);
}

static void accept_client (struct client *c, struct flux_msg_cred cred)
{
    if ((c->peer = peer_create (c->server->b->router,
                                cred,
                                true,
                                peer_send,
                                c)))
        client_set_handlers (c, peer_message, NULL, NULL);
    else
        client_destroy (c);
}

/* A client of a private socket will act for the owner, so [access], which lets
 * guests and root in, does not apply there.
 */
static bool authorize (struct client_server *s, struct flux_msg_cred *cred)
{
    bool is_public = !s->connect_cb;

    if (is_public && cred->userid == 0 && s->b->access_root)
        cred->rolemask = FLUX_ROLE_OWNER | FLUX_ROLE_LOCAL;
    return (cred->rolemask & FLUX_ROLE_OWNER)
           || (is_public && s->b->access_guests);
}

static void connected (flux_reactor_t *r,
                       flux_watcher_t *w,
                       int revents,
                       void *arg)
{
    struct client_server *s = arg;
    struct flux_msg_cred cred;
    struct usock *us;
    struct client *c;

    if (!(us = usock_accept (s->fd, s->b->owner, &cred)))
        return;
    if (!authorize (s, &cred)) {
        flux_log (s->b->h,
                  LOG_ERR,
                  "connection of uid %u refused",
                  (unsigned int)cred.userid);
        (void)usock_greet (us, EPERM);
        usock_destroy (us);
        return;
    }
    if (usock_greet (us, 0) < 0 || !(c = calloc (1, sizeof (*c)))) {
        usock_destroy (us);
        return;
    }
    c->server = s;
    c->us = us;
    c->next = s->clients;
    s->clients = c;
    if (!(c->r = flux_fd_watcher_create (s->b->reactor,
                                         usock_fd (us),
                                         FLUX_POLLIN,
                                         readable,
                                         c))
        || !(c->w = flux_fd_watcher_create (s->b->reactor,
                                            usock_fd (us),
                                            FLUX_POLLOUT,
                                            writable,
                                            c))) {
        client_destroy (c);
        return;
    }
    flux_watcher_start (c->r);
    want_write (c);
    if (s->connect_cb)
        s->connect_cb (c, s->arg);
    else
        accept_client (c, cred);
}

struct client_server *client_server_create_private (struct broker *b,
                                                    const char *path,
                                                    client_connect_f cb,
                                                    void *arg)
{
    struct client_server *s;
    flux_error_t error;

    if (!(s = calloc (1, sizeof (*s))))
        return NULL;
    s->b = b;
    s->fd = -1;
    s->connect_cb = cb;
    s->arg = arg;
    if (!(s->path = strdup (path))
        || (s->fd = usock_listen (path, &error)) < 0
        || !(s->w = flux_fd_watcher_create (b->reactor,
                                            s->fd,
                                            FLUX_POLLIN,
                                            connected,
                                            s))) {
        client_server_destroy (s);
        return NULL;
    }
    flux_watcher_start (s->w);
    return s;
}

struct client_server *client_server_create (struct broker *b, const char *path)
{
    return client_server_create_private (b, path, NULL, NULL);
}

void client_server_destroy (struct client_server *s)
{
    if (s) {
        ERRNO_SAFE_BLOCK;
        while (s->clients) {
            s->clients->busy = false;
            client_free (s->clients);
        }
        flux_watcher_destroy (s->w);
        if (s->fd >= 0) {
            close (s->fd);
            (void)unlink (s->path);
        }
        free (s->path);
        free (s);
    }
}

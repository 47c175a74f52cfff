/* SPDX-License-Identifier: LGPL-3.0-only */
/* usock.h - messages over a unix stream socket; both ends use it.
 *
 * Each message is preceded by its length (4 bytes, big endian).  The server
 * greets with one byte: 0, or an errno that says why it will not serve.
 *
 * A struct usock never blocks.  Input: when the fd is readable, usock_read(),
 * then usock_recv() until it has no more.  Output: usock_send() queues and
 * writes what goes; while usock_want_write(), call usock_flush() when the fd
 * is writable.
 */
#ifndef SOLO_USOCK_H
#define SOLO_USOCK_H

#include <flux/core.h>

struct usock;

/* Takes over fd on success and makes it non-blocking. */
struct usock *usock_create (int fd);
void usock_destroy (struct usock *us);
int usock_fd (struct usock *us);

/* Read what there is.  -1: ECONNRESET at end of file, or what read(2) says. */
int usock_read (struct usock *us);

/* The next complete message; NULL: EAGAIN (none), EPROTO (garbage). */
flux_msg_t *usock_recv (struct usock *us);
bool usock_has_message (struct usock *us);

int usock_send (struct usock *us, const flux_msg_t *msg);
int usock_flush (struct usock *us);
bool usock_want_write (struct usock *us);

/* A socket bound to path (an old one is removed) that listens; mode 0777. */
int usock_listen (const char *path, flux_error_t *errp);

/* Accept one client, which then waits for its greeting.  cred gets the peer's
 * uid, and as role owner or user, always with local.
 */
struct usock *usock_accept (int listen_fd, uid_t owner,
                            struct flux_msg_cred *cred);
int usock_greet (struct usock *us, int errnum);

/* Connect and wait for the greeting. */
struct usock *usock_connect (const char *path, flux_error_t *errp);

#endif

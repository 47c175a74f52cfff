/* SPDX-License-Identifier: LGPL-3.0-only */
/* usock.c - see usock.h */

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "errprintf.h"
#include "usock.h"

#define CHUNK 65536
#define PREFIX sizeof (uint32_t)    // the length before each message
#define LONGEST (1u << 30)

/* A message may begin anywhere: bytes from 'start' to 'end' are unused yet. */
struct buffer {
    char *bytes;
    size_t size;
    size_t start;
    size_t end;
};

struct usock {
    int fd;
    struct buffer in;
    struct buffer out;
};

/* Returns the place for n more bytes, or NULL. */
static char *room (struct buffer *b, size_t n)
{
    size_t used = b->end - b->start;

    if (b->end + n > b->size && b->start > 0) {
        memmove (b->bytes, b->bytes + b->start, used);
        b->start = 0;
        b->end = used;
    }
    if (b->end + n > b->size) {
        size_t size = 2 * b->size > used + n ? 2 * b->size : used + n;
        char *bytes = realloc (b->bytes, size);
        if (!bytes)
            return NULL;
        b->bytes = bytes;
        b->size = size;
    }
    return b->bytes + b->end;
}

static void consume (struct buffer *b, size_t n)
{
    b->start += n;
    if (b->start == b->end)
        b->start = b->end = 0;
}

struct usock *usock_create (int fd)
{
    int flags = fcntl (fd, F_GETFL);
    struct usock *us = NULL;

    if (flags >= 0 && fcntl (fd, F_SETFL, flags | O_NONBLOCK) == 0
        && (us = calloc (1, sizeof (*us))))
        us->fd = fd;
    return us;
}

void usock_destroy (struct usock *us)
{
    ERRNO_SAFE_BLOCK;

    if (us) {
        close (us->fd);
        free (us->in.bytes);
        free (us->out.bytes);
        free (us);
    }
}

int usock_fd (struct usock *us)
{
    return us->fd;
}

/* Input */

int usock_read (struct usock *us)
{
    size_t space;
    ssize_t n;

    do {
        char *p = room (&us->in, CHUNK);
        if (!p)
            return -1;
        space = us->in.size - us->in.end;
        if ((n = read (us->fd, p, space)) > 0)
            us->in.end += n;
        if (n == 0)
            errno = ECONNRESET;
    } while ((n < 0 && errno == EINTR) || (n > 0 && (size_t)n == space));
    return n > 0 || (n < 0 && errno == EAGAIN) ? 0 : -1;
}

/* The length of the first message if all of it is there, or 0; -1 if that is
 * no message.
 */
static ssize_t first_length (const struct buffer *b)
{
    uint32_t n;

    if (b->end - b->start < PREFIX)
        return 0;
    memcpy (&n, b->bytes + b->start, PREFIX);
    n = ntohl (n);
    if (n < 1 || n > LONGEST)
        return -1;
    return b->end - b->start >= PREFIX + n ? n : 0;
}

bool usock_has_message (struct usock *us)
{
    return first_length (&us->in) != 0;
}

flux_msg_t *usock_recv (struct usock *us)
{
    ssize_t n = first_length (&us->in);
    flux_msg_t *msg = NULL;

    if (n <= 0)
        errno = n < 0 ? EPROTO : EAGAIN;
    else if ((msg = flux_msg_decode (us->in.bytes + us->in.start + PREFIX, n)))
        consume (&us->in, PREFIX + n);
    return msg;
}

/* Output */

int usock_send (struct usock *us, const flux_msg_t *msg)
{
    ssize_t size = flux_msg_encode_size (msg);
    uint32_t n = htonl (size);
    char *p;

    if (size < 0 || size > LONGEST) {
        errno = EINVAL;
        return -1;
    }
    if (!(p = room (&us->out, PREFIX + size))
        || flux_msg_encode (msg, p + PREFIX, size) < 0)
        return -1;
    memcpy (p, &n, PREFIX);
    us->out.end += PREFIX + size;
    return usock_flush (us);
}

int usock_flush (struct usock *us)
{
    struct buffer *b = &us->out;

    while (usock_want_write (us)) {
        ssize_t n = send (us->fd, b->bytes + b->start, b->end - b->start,
                          MSG_NOSIGNAL);
        if (n > 0)
            consume (b, n);
        else if (errno != EINTR)
            return errno == EAGAIN ? 0 : -1;
    }
    return 0;
}

bool usock_want_write (struct usock *us)
{
    return us->out.end > us->out.start;
}

/* Connections */

/* A new socket, and the address of a path; -1 if that is too long. */
static int open_socket (const char *path, struct sockaddr_un *addr)
{
    *addr = (struct sockaddr_un) { .sun_family = AF_UNIX };
    if (strlen (path) >= sizeof (addr->sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy (addr->sun_path, path);
    return socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void fail_with (int fd, const char *path, flux_error_t *errp)
{
    ERRNO_SAFE_BLOCK;

    errprintf (errp, "%s: %s", path,
               errno == ENAMETOOLONG ? "socket path is too long"
               : errno == ENOENT ? "no instance listens there"
               : strerror (errno));
    if (fd >= 0)
        close (fd);
}

int usock_listen (const char *path, flux_error_t *errp)
{
    struct sockaddr_un addr;
    int fd = open_socket (path, &addr);

    if (fd >= 0 && (unlink (path) == 0 || errno == ENOENT)
        && bind (fd, (struct sockaddr *)&addr, sizeof (addr)) == 0
        && chmod (path, 0777) == 0
        && listen (fd, SOMAXCONN) == 0)
        return fd;
    fail_with (fd, path, errp);
    return -1;
}

struct usock *usock_accept (int listen_fd, uid_t owner,
                            struct flux_msg_cred *cred)
{
    int fd = accept4 (listen_fd, NULL, NULL, SOCK_CLOEXEC);
    struct usock *us = NULL;
    struct ucred client;
    socklen_t len = sizeof (client);

    if (fd >= 0
        && (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &client, &len) < 0
            || !(us = usock_create (fd))))
        ERRNO_SAFE (close (fd));
    if (us) {
        bool is_owner = client.uid == owner;
        cred->userid = client.uid;
        cred->rolemask = is_owner ? FLUX_ROLE_OWNER : FLUX_ROLE_USER;
        cred->rolemask |= FLUX_ROLE_LOCAL;
    }
    return us;
}

int usock_greet (struct usock *us, int errnum)
{
    unsigned char byte = errnum;

    return send (us->fd, &byte, 1, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static bool is_welcome (int fd)
{
    unsigned char byte;
    ssize_t n;

    while ((n = read (fd, &byte, 1)) < 0 && errno == EINTR)
        ;
    if (n == 0 || (n == 1 && byte != 0))
        errno = n == 0 ? ECONNRESET : byte;
    return n == 1 && byte == 0;
}

struct usock *usock_connect (const char *path, flux_error_t *errp)
{
    struct sockaddr_un addr;
    int fd = open_socket (path, &addr);
    struct usock *us = NULL;

    if (fd < 0
        || connect (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0
        || !is_welcome (fd)
        || !(us = usock_create (fd)))
        fail_with (fd, path, errp);
    return us;
}

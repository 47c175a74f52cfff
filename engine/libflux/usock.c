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

#define READ_CHUNK 65536
#define MAX_MESSAGE (1u << 30)

/* Bytes [head, tail) are in use. */
struct buffer {
    uint8_t *data;
    size_t size;
    size_t head;
    size_t tail;
};

struct usock {
    int fd;
    struct buffer in;
    struct buffer out;
};

/* Make room for n more bytes after the tail. */
static int buffer_reserve (struct buffer *b, size_t n)
{
    size_t used = b->tail - b->head;
    size_t size = b->size ? b->size : READ_CHUNK;
    uint8_t *data;

    if (b->size - b->tail >= n)
        return 0;
    if (b->head > 0) {
        memmove (b->data, b->data + b->head, used);
        b->head = 0;
        b->tail = used;
        if (b->size - b->tail >= n)
            return 0;
    }
    while (size - used < n)
        size *= 2;
    if (!(data = realloc (b->data, size)))
        return -1;
    b->data = data;
    b->size = size;
    return 0;
}

static void buffer_consume (struct buffer *b, size_t n)
{
    b->head += n;
    if (b->head == b->tail)
        b->head = b->tail = 0;
}

struct usock *usock_create (int fd)
{
    struct usock *us;
    int flags = fcntl (fd, F_GETFL);

    if (flags < 0 || fcntl (fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return NULL;
    if (!(us = calloc (1, sizeof (*us))))
        return NULL;
    us->fd = fd;
    return us;
}

void usock_destroy (struct usock *us)
{
    if (us) {
        ERRNO_SAFE_BLOCK;
        close (us->fd);
        free (us->in.data);
        free (us->out.data);
        free (us);
    }
}

int usock_fd (struct usock *us)
{
    return us->fd;
}

int usock_read (struct usock *us)
{
    struct buffer *b = &us->in;
    ssize_t n;

    do {
        if (buffer_reserve (b, READ_CHUNK) < 0)
            return -1;
        n = read (us->fd, b->data + b->tail, b->size - b->tail);
        if (n > 0)
            b->tail += n;
    } while ((n < 0 && errno == EINTR) || (n > 0 && b->tail == b->size));
    if (n == 0) {
        errno = ECONNRESET;
        return -1;
    }
    return n > 0 || errno == EAGAIN ? 0 : -1;
}

/* Length of the complete message at the head; 0: incomplete, -1: garbage. */
static ssize_t next_length (struct usock *us)
{
    size_t used = us->in.tail - us->in.head;
    uint32_t n;

    if (used < 4)
        return 0;
    memcpy (&n, us->in.data + us->in.head, 4);
    n = ntohl (n);
    if (n == 0 || n > MAX_MESSAGE)
        return -1;
    return used - 4 < n ? 0 : n;
}

bool usock_has_message (struct usock *us)
{
    return next_length (us) != 0;
}

flux_msg_t *usock_recv (struct usock *us)
{
    ssize_t n = next_length (us);
    flux_msg_t *msg;

    if (n <= 0) {
        errno = n < 0 ? EPROTO : EAGAIN;
        return NULL;
    }
    if ((msg = flux_msg_decode (us->in.data + us->in.head + 4, n)))
        buffer_consume (&us->in, 4 + n);
    return msg;
}

int usock_send (struct usock *us, const flux_msg_t *msg)
{
    struct buffer *b = &us->out;
    ssize_t size = flux_msg_encode_size (msg);
    uint32_t n = htonl (size);

    if (size < 0 || size > MAX_MESSAGE) {
        errno = EINVAL;
        return -1;
    }
    if (buffer_reserve (b, 4 + size) < 0
        || flux_msg_encode (msg, b->data + b->tail + 4, size) < 0)
        return -1;
    memcpy (b->data + b->tail, &n, 4);
    b->tail += 4 + size;
    return usock_flush (us);
}

int usock_flush (struct usock *us)
{
    struct buffer *b = &us->out;
    ssize_t n;

    while (b->head < b->tail) {
        n = send (us->fd, b->data + b->head, b->tail - b->head, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return errno == EAGAIN ? 0 : -1;
        }
        buffer_consume (b, n);
    }
    return 0;
}

bool usock_want_write (struct usock *us)
{
    return us->out.head < us->out.tail;
}

static int set_address (struct sockaddr_un *addr, const char *path,
                        flux_error_t *errp)
{
    *addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (strlen (path) >= sizeof (addr->sun_path)) {
        errprintf (errp, "socket path is too long: %s", path);
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy (addr->sun_path, path);
    return 0;
}

int usock_listen (const char *path, flux_error_t *errp)
{
    struct sockaddr_un addr;
    int fd;

    if (set_address (&addr, path, errp) < 0)
        return -1;
    if ((fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0)
        goto error;
    (void)unlink (path);
    if (bind (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0
        || chmod (path, 0777) < 0
        || listen (fd, SOMAXCONN) < 0)
        goto error;
    return fd;
error:
    errprintf (errp, "%s: %s", path, strerror (errno));
    if (fd >= 0)
        close (fd);
    return -1;
}

struct usock *usock_accept (int listen_fd, uid_t owner,
                            struct flux_msg_cred *cred)
{
    struct ucred peer;
    socklen_t len = sizeof (peer);
    struct usock *us;
    int fd;

    if ((fd = accept4 (listen_fd, NULL, NULL, SOCK_CLOEXEC)) < 0)
        return NULL;
    if (getsockopt (fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0
        || !(us = usock_create (fd))) {
        ERRNO_SAFE (close (fd));
        return NULL;
    }
    cred->userid = peer.uid;
    cred->rolemask = FLUX_ROLE_LOCAL
                     | (peer.uid == owner ? FLUX_ROLE_OWNER : FLUX_ROLE_USER);
    return us;
}

int usock_greet (struct usock *us, int errnum)
{
    unsigned char greeting = errnum;

    return send (us->fd, &greeting, 1, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

static int read_greeting (int fd)
{
    unsigned char greeting;
    ssize_t n;

    while ((n = read (fd, &greeting, 1)) < 0 && errno == EINTR)
        ;
    if (n < 0)
        return -1;
    if (n == 0 || greeting != 0) {
        errno = n == 0 ? ECONNRESET : greeting;
        return -1;
    }
    return 0;
}

struct usock *usock_connect (const char *path, flux_error_t *errp)
{
    struct sockaddr_un addr;
    struct usock *us;
    int fd;

    if (set_address (&addr, path, errp) < 0)
        return NULL;
    if ((fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0
        || connect (fd, (struct sockaddr *)&addr, sizeof (addr)) < 0
        || read_greeting (fd) < 0
        || !(us = usock_create (fd))) {
        ERRNO_SAFE_BLOCK;
        if (errno == ENOENT)
            errprintf (errp, "%s: no instance listens there", path);
        else
            errprintf (errp, "%s: %s", path, strerror (errno));
        if (fd >= 0)
            close (fd);
        return NULL;
    }
    return us;
}

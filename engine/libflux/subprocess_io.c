/* SPDX-License-Identifier: LGPL-3.0-only */
/* subprocess_io.c - the streams of a process: what it writes is kept until
 * somebody reads it, what it is to read is kept until it takes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "subprocess_private.h"

#define READ_SIZE 65536

static struct channel *find (flux_subprocess_t *p, const char *name)
{
    for (struct channel *ch = p ? p->channels : NULL; ch; ch = ch->next) {
        if (strcmp (ch->name, name) == 0)
            return ch;
    }
    return NULL;
}

/* Reading
 */

static flux_subprocess_output_f output_op (struct channel *ch)
{
    flux_subprocess_ops_t *ops = &ch->p->ops;

    return strcmp (ch->name, "stdout") == 0 ? ops->on_stdout : ops->on_stderr;
}

static bool has_output (struct channel *ch)
{
    return ch->in_len > 0
           && (ch->eof_seen || memchr (ch->in, '\n', ch->in_len));
}

/* One call per line, and a last one with nothing to read.  The
 * callback that takes nothing is not called again before there is more.
 */
static void deliver (struct channel *ch)
{
    flux_subprocess_t *p = ch->p;
    flux_subprocess_output_f op;

    p->refcount++;
    while (has_output (ch) && (op = output_op (ch))) {
        size_t before = ch->in_len;
        op (p, ch->name);
        if (ch->in_len == before)
            break;
    }
    if (ch->eof_seen && !ch->eof_told) {
        ch->eof_told = true;
        if ((op = output_op (ch)))
            op (p, ch->name);
        subprocess_check_complete (p);
    }
    subprocess_decref (p);
}

static void reader_cb (flux_reactor_t *r, flux_watcher_t *w,
                       int revents, void *arg)
{
    struct channel *ch = arg;
    char *buf = realloc (ch->in, ch->in_len + READ_SIZE + 1);
    ssize_t n;

    if (!buf)
        return;
    ch->in = buf;
    n = read (ch->fd, buf + ch->in_len, READ_SIZE);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0)
        ch->in_len += n;
    else {
        ch->eof_seen = true;
        flux_watcher_stop (w);
    }
    deliver (ch);
}

enum { READ_ANY, READ_TRIMMED, READ_LINE_OR_REST };

static int take (flux_subprocess_t *p, const char *name, const char **bufp,
                 int how)
{
    struct channel *ch = find (p, name ? name : "stdout");
    char *nl;
    size_t n;
    size_t keep;

    if (!ch || !ch->readable || !bufp) {
        errno = EINVAL;
        return -1;
    }
    nl = ch->in_len > 0 ? memchr (ch->in, '\n', ch->in_len) : NULL;
    if (how == READ_ANY || (!nl && how == READ_LINE_OR_REST && ch->eof_seen))
        n = ch->in_len;
    else
        n = nl ? (size_t)(nl - ch->in) + 1 : 0;
    keep = n;
    if (how == READ_TRIMMED && n > 0)
        keep--;
    free (ch->last);
    if (!(ch->last = malloc (n + 1)))
        return -1;
    if (n > 0)
        memcpy (ch->last, ch->in, n);
    ch->last[keep] = '\0';
    ch->in_len -= n;
    if (ch->in_len > 0)
        memmove (ch->in, ch->in + n, ch->in_len);
    *bufp = ch->last;
    return keep;
}

int flux_subprocess_read (flux_subprocess_t *p, const char *stream,
                          const char **bufp)
{
    return take (p, stream, bufp, READ_ANY);
}

int flux_subprocess_read_trimmed_line (flux_subprocess_t *p,
                                       const char *stream, const char **bufp)
{
    return take (p, stream, bufp, READ_TRIMMED);
}

int flux_subprocess_getline (flux_subprocess_t *p, const char *stream,
                             const char **bufp)
{
    return take (p, stream, bufp, READ_LINE_OR_REST);
}

/* Writing
 */

static void close_out (struct channel *ch)
{
    ch->out_len = 0;
    flux_watcher_destroy (ch->writer);
    ch->writer = NULL;
    if (ch->fd >= 0)
        close (ch->fd);
    ch->fd = -1;
}

static void writer_cb (flux_reactor_t *r, flux_watcher_t *w,
                       int revents, void *arg)
{
    struct channel *ch = arg;
    ssize_t n = write (ch->fd, ch->out, ch->out_len);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        close_out (ch);
        return;
    }
    ch->out_len -= n;
    memmove (ch->out, ch->out + n, ch->out_len);
    if (ch->out_len == 0) {
        flux_watcher_stop (w);
        if (ch->close_pending)
            close_out (ch);
    }
    if (ch->p->ops.on_credit)
        ch->p->ops.on_credit (ch->p, ch->name, n);
}

int flux_subprocess_write (flux_subprocess_t *p, const char *stream,
                           const char *buf, size_t len)
{
    struct channel *ch = find (p, stream ? stream : "stdin");
    char *out;

    if (!ch || ch->readable || !buf) {
        errno = EINVAL;
        return -1;
    }
    if (ch->fd < 0 || ch->close_pending) {
        errno = EPIPE;
        return -1;
    }
    if (!(out = realloc (ch->out, ch->out_len + len + 1)))
        return -1;
    ch->out = out;
    memcpy (out + ch->out_len, buf, len);
    ch->out_len += len;
    flux_watcher_start (ch->writer);
    return len;
}

int flux_subprocess_close (flux_subprocess_t *p, const char *stream)
{
    struct channel *ch = find (p, stream ? stream : "stdin");

    if (!ch || ch->readable) {
        errno = EINVAL;
        return -1;
    }
    ch->close_pending = true;
    if (ch->out_len == 0)
        close_out (ch);
    return 0;
}

/* Life
 */

int channel_create (flux_subprocess_t *p, const char *name)
{
    struct channel *ch;
    int in = strcmp (name, "stdin") == 0;
    int fd[2];

    if (!(ch = calloc (1, sizeof (*ch))))
        return -1;
    ch->fd = ch->child_fd = -1;
    ch->p = p;
    ch->next = p->channels;
    p->channels = ch;
    ch->readable = !in;
    if (!(ch->name = strdup (name)) || pipe2 (fd, O_CLOEXEC) < 0)
        return -1;
    ch->fd = fd[in ? 1 : 0];
    ch->child_fd = fd[in ? 0 : 1];
    if (fcntl (ch->fd, F_SETFL, O_NONBLOCK) < 0)
        return -1;
    if (!in
        && !(ch->reader = flux_fd_watcher_create (p->r,
                                                  ch->fd,
                                                  FLUX_POLLIN,
                                                  reader_cb,
                                                  ch)))
        return -1;
    if (in
        && !(ch->writer = flux_fd_watcher_create (p->r,
                                                  ch->fd,
                                                  FLUX_POLLOUT,
                                                  writer_cb,
                                                  ch)))
        return -1;
    flux_watcher_start (ch->reader);
    return 0;
}

void channel_destroy (struct channel *ch)
{
    flux_watcher_destroy (ch->reader);
    flux_watcher_destroy (ch->writer);
    if (ch->fd >= 0)
        close (ch->fd);
    if (ch->child_fd >= 0)
        close (ch->child_fd);
    free (ch->name);
    free (ch->in);
    free (ch->last);
    free (ch->out);
    free (ch);
}

// vi: ts=4 sw=4 expandtab

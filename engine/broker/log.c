/* SPDX-License-Identifier: LGPL-3.0-only */
/* log.c - the ring of log entries behind flux dmesg.
 *
 * An entry is kept as it arrives, in the text form of RFC 5424.  The
 * broker also prints entries of log-stderr-level and graver ones.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libutil/errno_safe.h"
#include "broker.h"

enum { RING_SIZE = 4096 };

struct logbuf {
    struct broker *b;
    char *ring[RING_SIZE];
    unsigned int first;
    unsigned int count;
    struct flux_msglist *followers;
    flux_msg_handler_t **handlers;
};

static const char *severity_names[] = {
    "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug",
};

/* <PRI>1 TIMESTAMP HOSTNAME APPNAME PROCID MSGID SD MSG
 */
static void print_entry (const char *entry)
{
    char stamp[64], host[64], app[64];
    int pri, pos = 0;
    struct tm tm;
    time_t t;
    int usec = 0;
    char date[64];

    if (sscanf (entry,
                "<%d>1 %63s %63s %63s %*s %*s %*s %n",
                &pri, stamp, host, app, &pos) < 4
        || pos == 0) {
        fprintf (stderr, "%s\n", entry);
        return;
    }
    memset (&tm, 0, sizeof (tm));
    const char *rest = strptime (stamp, "%Y-%m-%dT%T", &tm);
    if (rest && *rest == '.')
        usec = atoi (rest + 1);
    t = timegm (&tm);
    localtime_r (&t, &tm);
    strftime (date, sizeof (date), "%b %d %T", &tm);
    fprintf (stderr, "%s.%06d ", date, usec);
    strftime (date, sizeof (date), "%Z %Y", &tm);
    fprintf (stderr,
             "%s %s.%s[%s]: %s\n",
             date,
             app,
             severity_names[pri >> 3 & 7],
             host,
             entry + pos);
}

static int level (struct logbuf *log, const char *name, int dflt)
{
    const char *s = attr_get (log->b->attrs, name);

    return s ? atoi (s) : dflt;
}

static void drop_oldest (struct logbuf *log)
{
    free (log->ring[log->first]);
    log->ring[log->first] = NULL;
    log->first = (log->first + 1) % RING_SIZE;
    log->count--;
}

static void append (struct logbuf *log, const char *buf, size_t len)
{
    const flux_msg_t *msg;
    char *entry;
    int pri = 6 << 3; // flux keeps the severity in these bits

    while (len > 0 && (buf[len - 1] == '\0' || buf[len - 1] == '\n'))
        len--;
    if (!(entry = strndup (buf, len)))
        return;
    (void)sscanf (entry, "<%d>", &pri);
    if ((pri >> 3) <= level (log, "log-stderr-level", 3))
        print_entry (entry);
    if ((pri >> 3) > level (log, "log-level", 7)) {
        free (entry);
        return;
    }
    if (log->count == RING_SIZE)
        drop_oldest (log);
    log->ring[(log->first + log->count++) % RING_SIZE] = entry;
    msg = flux_msglist_first (log->followers);
    while (msg) {
        if (flux_respond (log->b->h, msg, entry) < 0)
            fprintf (stderr, "log: flux_respond: %s\n", strerror (errno));
        msg = flux_msglist_next (log->followers);
    }
}

static void append_cb (flux_t *h,
                       flux_msg_handler_t *mh,
                       const flux_msg_t *msg,
                       void *arg)
{
    struct logbuf *log = arg;
    const void *buf;
    size_t len;

    if (flux_request_decode_raw (msg, NULL, &buf, &len) < 0) {
        if (!flux_msg_is_noresponse (msg))
            (void)flux_respond_error (h, msg, errno, NULL);
        return;
    }
    append (log, buf ? buf : "", len);
    if (!flux_msg_is_noresponse (msg))
        (void)flux_respond (h, msg, NULL);
}

static void dmesg_cb (flux_t *h,
                      flux_msg_handler_t *mh,
                      const flux_msg_t *msg,
                      void *arg)
{
    struct logbuf *log = arg;
    int only_new = 0;
    int follow;
    int rc;

    rc = flux_request_unpack (msg,
                              NULL,
                              "{s?b s:b}",
                              "nobacklog", &only_new,
                              "follow", &follow);
    if (rc == 0 && !flux_msg_is_streaming (msg)) {
        errno = EPROTO;
        rc = -1;
    }
    for (unsigned int i = 0; rc == 0 && !only_new && i < log->count; i++)
        rc = flux_respond (h, msg, log->ring[(log->first + i) % RING_SIZE]);
    if (rc == 0 && follow && flux_msglist_append (log->followers, msg) == 0)
        return;
    if (rc == 0 && !follow)
        errno = ENODATA;
    (void)flux_respond_error (h, msg, errno, NULL);
}

static void clear_cb (flux_t *h,
                      flux_msg_handler_t *mh,
                      const flux_msg_t *msg,
                      void *arg)
{
    struct logbuf *log = arg;

    while (log->count > 0)
        drop_oldest (log);
    (void)flux_respond (h, msg, NULL);
}

static void cancel_cb (flux_t *h,
                       flux_msg_handler_t *mh,
                       const flux_msg_t *msg,
                       void *arg)
{
    struct logbuf *log = arg;
    const char *topic;

    if (flux_msg_get_topic (msg, &topic) == 0
        && !strcmp (topic, "log.cancel"))
        (void)flux_msglist_cancel (h, log->followers, msg);
    else
        (void)flux_msglist_disconnect (log->followers, msg);
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "log.append", append_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "log.dmesg", dmesg_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "log.clear", clear_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "log.cancel", cancel_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "log.disconnect", cancel_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

struct logbuf *logbuf_create (struct broker *b)
{
    struct logbuf *log;

    if (!(log = calloc (1, sizeof (*log))))
        return NULL;
    log->b = b;
    if (!(log->followers = flux_msglist_create ())
        || flux_msg_handler_addvec (b->h, htab, log, &log->handlers) < 0) {
        logbuf_destroy (log);
        return NULL;
    }
    return log;
}

void logbuf_destroy (struct logbuf *log)
{
    if (log) {
        ERRNO_SAFE_BLOCK;
        flux_msg_handler_delvec (log->handlers);
        flux_msglist_destroy (log->followers);
        while (log->count > 0)
            drop_oldest (log);
        free (log);
    }
}

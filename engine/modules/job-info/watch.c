/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Streams of eventlog entries (job-info.eventlog-watch).
 *
 * An eventlog below "guest." lies in the job's own namespace while the job
 * runs, and in the main one, under the job's directory, afterwards.  So a
 * watch goes through phases: wait for the job to start (main eventlog),
 * follow the namespace, then read the rest where it was copied to.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "job-info.h"

struct watch {
    struct watch *next;
    struct info *ctx;
    const flux_msg_t *msg;
    flux_jobid_t id;
    char *path;         // below the job's directory
    bool guest;
    int flags;
    bool allowed;
    bool canceled;      // answer is sent or not wanted: wait for the KVS
    bool first_done;    // sentinel is sent
    int sent;           // entries sent
    flux_future_t *f;
    flux_future_t *old; // canceled stream of an earlier phase, running out
    bool watching;      // f is a stream that can be canceled
};

static void watch_free (struct watch *w)
{
    if (w) {
        ERRNO_SAFE_BLOCK;

        flux_future_destroy (w->f);
        flux_future_destroy (w->old);
        flux_msg_decref (w->msg);
        free (w->path);
        free (w);
    }
}

static void watch_remove (struct watch *w)
{
    struct watch **wp;

    for (wp = &w->ctx->watches; *wp && *wp != w; wp = &(*wp)->next)
        ;
    if (*wp)
        *wp = w->next;
    watch_free (w);
}

/* No word to those who watch: an error would end running jobs. */
void watches_destroy (struct info *ctx)
{
    while (ctx->watches)
        watch_remove (ctx->watches);
}

/* A stream ends only when the KVS says so. */
static void stop (struct watch *w)
{
    w->canceled = true;
    if (!w->watching)
        watch_remove (w);
    else if (flux_kvs_lookup_cancel (w->f) < 0)
        flux_log_error (w->ctx->h, "error canceling KVS lookup");
}

static void finish (struct watch *w, int errnum, const char *text)
{
    errno = errnum;
    respond_error (w->ctx->h, w->msg, text);
    w->canceled = true;
}

static int lookup (struct watch *w, const char *ns, const char *key,
                   int flags, flux_continuation_f cb)
{
    char path[256];

    if (!ns) {
        if (flux_job_kvs_key (path, sizeof (path), w->id, key) < 0)
            return -1;
        key = path;
    }
    flux_future_destroy (w->f);
    w->watching = (flags & FLUX_KVS_WATCH) != 0;
    if (!(w->f = flux_kvs_lookup (w->ctx->h, ns, flags, key))
        || flux_future_then (w->f, -1., cb, w) < 0) {
        w->watching = false;
        return -1;
    }
    return 0;
}

static int send_sentinel (struct watch *w)
{
    if (!(w->flags & FLUX_JOB_EVENT_WATCH_INITIAL_SENTINEL)
        || w->first_done)
        return 0;
    w->first_done = true;
    return flux_respond (w->ctx->h, w->msg, NULL);
}

/* Next line of *text (with its newline), or NULL */
static const char *next_line (const char **text, size_t *len)
{
    const char *line = *text;
    const char *end = strchr (line, '\n');

    if (!end)
        return NULL;
    *len = end - line + 1;
    *text = end + 1;
    return line;
}

static bool line_is (const char *line, size_t len, const char *name,
                     bool final)
{
    json_t *entry = json_loadb (line, len, 0, NULL);
    const char *s;
    json_t *context;
    bool match = entry
        && entry_parse (entry, NULL, &s, &context) == 0
        && streq (s, name)
        && (!final || json_is_true (json_object_get (context, "final")));

    json_decref (entry);
    return match;
}

/* Send entries of 'text'.  Returns 1 if the job's own log has ended. */
static int send_entries (struct watch *w, const char *text, int skip)
{
    bool main_log = !w->guest && streq (w->path, "eventlog");
    const char *line;
    size_t len;

    while ((line = next_line (&text, &len))) {
        if (skip > 0) {
            skip--;
            continue;
        }
        if (flux_respond_pack (w->ctx->h, w->msg, "{s:s#}",
                               "event", line, (int)len) < 0)
            return -1;
        w->sent++;
        if (main_log && line_is (line, len, "clean", false))
            return 1;
    }
    return 0;
}

static void read_rest (struct watch *w);

/* The first entry says whose job it is: who may not read it is refused. */
static bool allow (struct watch *w, const char *eventlog)
{
    if (!w->allowed && info_authorize (w->msg, eventlog) < 0) {
        finish (w, errno, NULL);
        stop (w);
        return false;
    }
    w->allowed = true;
    return true;
}

/* Data of the eventlog that is asked for */
static void stream_continuation (flux_future_t *f, void *arg)
{
    struct watch *w = arg;
    const char *s;
    int rc = 0;

    if (flux_kvs_lookup_get (f, &s) < 0) {
        int errnum = errno;

        w->watching = false;
        if (w->canceled)
            watch_remove (w);
        else if (w->guest && errnum == ENOTSUP) // namespace is gone
            read_rest (w);
        else {
            finish (w, errnum, NULL);
            watch_remove (w);
        }
        return;
    }
    if (w->canceled)
        goto more;
    if (!allow (w, s))
        goto more;
    if (!s)
        rc = send_sentinel (w);
    else
        rc = send_entries (w, s, 0);
    if (rc < 0)
        flux_log_error (w->ctx->h, "error responding to watch");
    if (rc == 1) {
        (void)send_sentinel (w);
        finish (w, ENODATA, NULL);
    }
    if (rc != 0)
        stop (w);
more:
    flux_future_reset (f);
}

/* The namespace is copied to the job's directory: read from where we are. */
static void rest_continuation (flux_future_t *f, void *arg)
{
    struct watch *w = arg;
    const char *s;

    if (w->canceled) {
        watch_remove (w);
        return;
    }
    if (flux_kvs_lookup_get (f, &s) < 0)
        finish (w, w->sent > 0 ? ENODATA : errno, NULL);
    else {
        if (s && send_entries (w, s, w->sent) < 0)
            flux_log_error (w->ctx->h, "error responding to watch");
        (void)send_sentinel (w);
        finish (w, ENODATA, NULL);
    }
    watch_remove (w);
}

static void read_rest (struct watch *w)
{
    char key[256];

    snprintf (key, sizeof (key), "guest.%s", w->path);
    if (lookup (w, NULL, key, 0, rest_continuation) < 0) {
        finish (w, errno, NULL);
        watch_remove (w);
    }
}

static int kvs_flags (struct watch *w)
{
    int flags = FLUX_KVS_WATCH | FLUX_KVS_WATCH_APPEND;

    if (w->flags & FLUX_JOB_EVENT_WATCH_WAITCREATE)
        flags |= FLUX_KVS_WAITCREATE;
    if (w->flags & FLUX_JOB_EVENT_WATCH_INITIAL_SENTINEL)
        flags |= FLUX_KVS_WATCH_INITIAL_SENTINEL;
    return flags;
}

static int follow_namespace (struct watch *w)
{
    char ns[64];

    if (flux_job_kvs_namespace (ns, sizeof (ns), w->id) < 0)
        return -1;
    return lookup (w, ns, w->path, kvs_flags (w), stream_continuation);
}

static bool log_has (const char *text, const char *name, bool final)
{
    const char *line;
    size_t len;

    while ((line = next_line (&text, &len))) {
        if (line_is (line, len, name, final))
            return true;
    }
    return false;
}

/* A guest path: see by the main eventlog where to look. */
static void phase_continuation (flux_future_t *f, void *arg)
{
    struct watch *w = arg;
    const char *s;
    bool started;
    bool over;

    if (f == w->old) {
        if (flux_kvs_lookup_get (f, NULL) < 0) {
            w->old = NULL;
            flux_future_destroy (f);
        }
        else
            flux_future_reset (f);
        return;
    }
    if (flux_kvs_lookup_get (f, &s) < 0) {
        int errnum = errno;

        w->watching = false;
        if (!w->canceled)
            finish (w, errnum, NULL);
        watch_remove (w);
        return;
    }
    if (w->canceled || !s)
        goto more;
    if (!allow (w, s))
        goto more;
    over = log_has (s, "release", true) || log_has (s, "clean", false);
    started = log_has (s, "start", false);
    if (!over && !started)
        goto more;
    // from here on the main log does not matter
    if (flux_kvs_lookup_cancel (f) < 0)
        flux_log_error (w->ctx->h, "error canceling KVS lookup");
    flux_future_reset (f);
    w->old = f;
    w->f = NULL;
    w->watching = false;
    if (over) {
        read_rest (w);
        return;
    }
    if (follow_namespace (w) < 0) {
        finish (w, errno, NULL);
        watch_remove (w);
    }
    return;
more:
    flux_future_reset (f);
}

/* For logs other than the main one, that one has to tell whose job it is. */
static void check_continuation (flux_future_t *f, void *arg)
{
    struct watch *w = arg;
    const char *s;

    if (w->canceled) {
        watch_remove (w);
        return;
    }
    if (flux_kvs_lookup_get (f, &s) < 0
        || info_authorize (w->msg, s) < 0)
        goto error;
    w->allowed = true;
    if (lookup (w, NULL, w->path, kvs_flags (w), stream_continuation) < 0)
        goto error;
    return;
error:
    finish (w, errno, NULL);
    watch_remove (w);
}

static struct watch *watch_create (struct info *ctx, const flux_msg_t *msg,
                                   flux_jobid_t id, const char *path)
{
    struct watch *w;

    if (!(w = calloc (1, sizeof (*w))) || !(w->path = strdup (path))) {
        free (w);
        return NULL;
    }
    w->ctx = ctx;
    w->id = id;
    w->msg = flux_msg_incref (msg);
    w->next = ctx->watches;
    ctx->watches = w;
    return w;
}

void watch_request (flux_t *h, flux_msg_handler_t *mh,
                    const flux_msg_t *msg, void *arg)
{
    const int known = FLUX_JOB_EVENT_WATCH_INITIAL_SENTINEL
                      | FLUX_JOB_EVENT_WATCH_WAITCREATE;
    const char *errstr = NULL;
    int flags;
    const char *path;
    flux_jobid_t id;
    struct watch *w = NULL;
    int rc;

    if (flux_request_unpack (msg, NULL, "{s:i s:s s:I}",
                             "flags", &flags,
                             "path", &path,
                             "id", &id) < 0)
        goto error;
    errno = EPROTO;
    if (!flux_msg_is_streaming (msg))
        errstr = "an eventlog is watched by a streaming RPC";
    else if ((flags | known) != known)
        errstr = "unknown flags";
    if (errstr)
        goto error;
    if (!(w = watch_create (arg, msg, id, strstarts (path, "guest.")
                                            ? path + 6 : path)))
        goto error;
    w->guest = strstarts (path, "guest.");
    w->flags = flags;
    if (w->guest)
        rc = lookup (w, NULL, "eventlog",
                     FLUX_KVS_WATCH | FLUX_KVS_WATCH_APPEND,
                     phase_continuation);
    else if (streq (path, "eventlog"))
        rc = lookup (w, NULL, path, kvs_flags (w), stream_continuation);
    else
        rc = lookup (w, NULL, "eventlog", 0, check_continuation);
    if (rc < 0)
        goto error;
    return;
error:
    respond_error (h, msg, errstr);
    if (w)
        watch_remove (w);
}

void watch_cancel_request (flux_t *h, flux_msg_handler_t *mh,
                           const flux_msg_t *msg, void *arg)
{
    struct info *ctx = arg;

    for (struct watch *w = ctx->watches; w; w = w->next) {
        if (!w->canceled && flux_cancel_match (msg, w->msg)) {
            finish (w, ENODATA, NULL);
            stop (w);
            return;
        }
    }
}

void watch_disconnect (struct info *ctx, const flux_msg_t *msg)
{
    struct watch *next;

    for (struct watch *w = ctx->watches; w; w = next) {
        next = w->next;
        if (!w->canceled && flux_disconnect_match (msg, w->msg))
            stop (w);
    }
}

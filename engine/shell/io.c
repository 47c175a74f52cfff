/* SPDX-License-Identifier: LGPL-3.0-only */
/* io.c - standard input and output of the tasks.
 *
 * Output goes line by line to the job's "output" eventlog (RFC 24).  Input
 * arrives at the leader's service, which appends it to the "input" eventlog
 * that all shells of the job watch.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <flux/idset.h>

#include "base64.h"
#include "respond.h"
#include "shell.h"

/* Lines wait here while a commit is in flight, or for a moment so that many
 * lines make one commit.
 */
#define BATCH_TIMEOUT 0.005

struct writer {
    flux_shell_t *shell;
    const char *key;
    char *buf;
    size_t len;
    flux_future_t *commit;
    flux_watcher_t *timer;
};

struct io {
    struct writer output;
    struct writer input;
    flux_future_t *input_watch;
};

/* Writer
 */

static void committed_cb (flux_future_t *f, void *arg);

static int commit (struct writer *w)
{
    flux_kvs_txn_t *txn;

    if (w->commit || w->len == 0)
        return 0;
    if ((txn = flux_kvs_txn_create ())
        && flux_kvs_txn_put (txn, FLUX_KVS_APPEND, w->key, w->buf) == 0)
        w->commit = flux_kvs_commit (w->shell->h, NULL, 0, txn);
    flux_kvs_txn_destroy (txn);
    if (!w->commit || flux_future_then (w->commit, -1., committed_cb, w) < 0)
        return -1;
    w->len = 0;
    return 0;
}

static void committed_cb (flux_future_t *f, void *arg)
{
    struct writer *w = arg;

    if (flux_future_get (f, NULL) < 0)
        fprintf (stderr, "flux-shell: %s: %s\n", w->key, strerror (errno));
    flux_future_destroy (f);
    w->commit = NULL;
    (void)commit (w);
}

static void batch_cb (flux_reactor_t *r, flux_watcher_t *timer,
                      int revents, void *arg)
{
    (void)commit (arg);
}

/* Wait until all that was appended is in the KVS.
 */
static void writer_sync (struct writer *w)
{
    while (w->commit || w->len > 0) {
        if (!w->commit && commit (w) < 0)
            return;
        committed_cb (w->commit, w);
    }
}

static int writer_init (struct writer *w, flux_shell_t *shell, const char *key)
{
    w->shell = shell;
    w->key = key;
    w->timer = flux_timer_watcher_create (shell->r,
                                          BATCH_TIMEOUT,
                                          0.,
                                          batch_cb,
                                          w);
    return w->timer ? 0 : -1;
}

static void writer_fini (struct writer *w)
{
    if (w->shell)
        writer_sync (w);
    flux_watcher_destroy (w->timer);
    free (w->buf);
}

static char *event_line (const char *name, json_t *context)
{
    json_t *entry = json_pack ("{s:f s:s s:O}",
                               "timestamp", now_realtime (),
                               "name", name,
                               "context", context);
    char *line = entry ? entry_encode (entry) : NULL;

    json_decref (entry);
    return line;
}

static int writer_append (struct writer *w, const char *name, json_t *context)
{
    char *line = event_line (name, context);
    size_t len = line ? strlen (line) : 0;
    char *buf;

    if (!line || !(buf = realloc (w->buf, w->len + len + 1))) {
        free (line);
        return -1;
    }
    w->buf = buf;
    memcpy (w->buf + w->len, line, len + 1);
    w->len += len;
    free (line);
    if (!w->commit)
        flux_watcher_start (w->timer);
    return 0;
}

void shell_io_event (flux_shell_t *shell, const char *name, json_t *context,
                     bool sync)
{
    struct writer *w = &shell->io->output;

    if (!context || writer_append (w, name, context) < 0)
        fprintf (stderr, "flux-shell: output event %s\n", name);
    json_decref (context);
    if (sync)
        writer_sync (w);
}

int shell_exec_event (flux_shell_t *shell, const char *name, json_t *context)
{
    struct writer w = { .shell = shell, .key = "exec.eventlog" };
    int rc;

    w.buf = event_line (name, context);
    w.len = w.buf ? strlen (w.buf) : 0;
    if ((rc = commit (&w)) == 0)
        flux_future_destroy (w.commit); // the KVS keeps the order of commits
    free (w.buf);
    json_decref (context);
    return rc;
}

/* Output
 */

static void write_kvs (struct task *task, const char *stream,
                       const char *data, int len)
{
    json_t *context = json_pack ("{s:s s:o}",
                                 "stream", stream,
                                 "rank", json_sprintf ("%d", task->rank));
    json_t *text;
    char *encoded;

    if (!data)
        json_object_set_new (context, "eof", json_true ());
    else if ((text = json_stringn (data, len)))
        json_object_set_new (context, "data", text);
    else if ((encoded = base64_encode (data, len))) { // not UTF-8
        json_object_set_new (context, "encoding", json_string ("base64"));
        json_object_set_new (context, "data", json_string (encoded));
        free (encoded);
    }
    shell_io_event (task->shell, "data", context, false);
}

/* A task has written a line, or closed the stream.
 */
void shell_io_task_output (struct task *task, const char *name)
{
    const char *data;
    int n;

    if ((n = flux_subprocess_getline (task->proc, name, &data)) < 0)
        shell_log_errno ("task %d: %s", task->rank, name);
    else
        write_kvs (task, name, n > 0 ? data : NULL, n);
}

/* Files are flux-core's.
 */
static int refuse_files (flux_shell_t *shell, const char *option,
                         const char *stream)
{
    json_t *o = json_object_get (json_object_get (shell->options, option),
                                 stream);
    const char *type = json_string_value (json_object_get (o, "type"));

    if (type && streq (type, "file"))
        return shell_log_errn (ENOTSUP, "%s: solo has no files for %s",
                               option, stream);
    return 0;
}

static int output_init (flux_shell_t *shell)
{
    struct io *io = shell->io;

    if (refuse_files (shell, "output", "stdout") < 0
        || refuse_files (shell, "output", "stderr") < 0)
        return -1;
    if (shell->rank == 0)
        shell_io_event (shell,
                        "header",
                        json_pack ("{s:i s:{s:s s:s} s:{s:i s:i} s:{}}",
                                   "version", 1,
                                   "encoding",
                                     "stdout", "UTF-8",
                                     "stderr", "UTF-8",
                                   "count",
                                     "stdout", shell->ntasks,
                                     "stderr", shell->ntasks,
                                   "options"),
                        false);
    /* On its way before anybody gets past the barrier. */
    return commit (&io->output);
}

/* Input
 */

/* Request to the leader: the payload is the context of a data event.
 */
static void stdin_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    flux_shell_t *shell = arg;
    json_t *context;
    const char *stream;
    const char *rank;

    if (flux_msg_authorize (msg, getuid ()) < 0
        || flux_request_unpack (msg, NULL, "o", &context) < 0)
        goto error;
    if (json_unpack (context, "{s:s s:s}", "stream", &stream, "rank", &rank) < 0) {
        errno = EPROTO;
        goto error;
    }
    if (shell->running == 0 && shell->size == 1) {
        errno = EPIPE;
        goto error;
    }
    if (writer_append (&shell->io->input, "data", context) < 0)
        goto error;
    if (flux_respond (h, msg, NULL) < 0)
        shell_log_errno ("stdin: respond");
    return;
error:
    respond_error (h, msg, NULL);
}

static bool is_addressed (const char *ranks, int rank)
{
    struct idset *ids;
    bool result;

    if (streq (ranks, "all"))
        return true;
    ids = idset_decode (ranks);
    result = ids && idset_test (ids, rank);
    idset_destroy (ids);
    return result;
}

static void feed_tasks (flux_shell_t *shell, json_t *context)
{
    const char *ranks;
    const char *data = NULL;
    size_t len = 0;
    const char *encoding = NULL;
    int eof = 0;
    void *decoded = NULL;

    if (json_unpack (context,
                     "{s:s s?s% s?s s?b}",
                     "rank", &ranks,
                     "data", &data, &len,
                     "encoding", &encoding,
                     "eof", &eof) < 0
        || (encoding && data && base64_decode (data, &decoded, &len) < 0)) {
        shell_log_error ("malformed input event");
        return;
    }
    for (int i = 0; i < shell->ntasks_local; i++) {
        struct task *task = &shell->tasks[i];
        if (!task->proc || task->completed
            || !is_addressed (ranks, task->rank))
            continue;
        if (len > 0
            && flux_subprocess_write (task->proc,
                                      "stdin",
                                      decoded ? decoded : data,
                                      len) < 0
            && errno != EPIPE)
            shell_log_errno ("task %d: stdin", task->rank);
        if (eof)
            (void)flux_subprocess_close (task->proc, "stdin");
    }
    free (decoded);
}

static void input_cb (flux_future_t *f, void *arg)
{
    flux_shell_t *shell = arg;
    const char *text;
    json_t *entry;
    const char *name;
    json_t *context;

    if (flux_job_event_watch_get (f, &text) < 0) {
        if (errno != ENODATA)
            shell_log_errno ("input eventlog");
        return;
    }
    if ((entry = json_loads (text, 0, NULL))
        && entry_parse (entry, NULL, &name, &context) == 0
        && streq (name, "data"))
        feed_tasks (shell, context);
    json_decref (entry);
    flux_future_reset (f);
}

/* Owner and guest may send input: stdin_cb() tells whose the job is. */
static int register_service (flux_shell_t *shell)
{
    struct flux_match match = FLUX_MATCH_REQUEST;
    flux_future_t *f = flux_service_register (shell->h, shell->service);
    int rc = f ? flux_future_get (f, NULL) : -1;
    flux_msg_handler_t *mh;
    char topic[80];

    flux_future_destroy (f);
    snprintf (topic, sizeof (topic), "%s.stdin", shell->service);
    match.topic_glob = topic;
    if (rc < 0
        || !(mh = flux_msg_handler_create (shell->h, match, stdin_cb, shell)))
        return -1;
    flux_msg_handler_allow_rolemask (mh, FLUX_ROLE_USER);
    flux_msg_handler_start (mh);
    return flux_aux_set (shell->h, NULL, mh,
                         (flux_free_f)flux_msg_handler_destroy);
}

static int input_init (flux_shell_t *shell)
{
    struct io *io = shell->io;
    json_t *header;
    int rc;

    if (refuse_files (shell, "input", "stdin") < 0)
        return -1;
    if (shell->rank == 0) {
        if (register_service (shell) < 0)
            return shell_log_errno ("register stdin service");
        if (!(header = json_pack ("{s:{} s:{s:i} s:{s:s} s:i}",
                                  "options",
                                  "count",
                                    "stdin", 1,
                                  "encoding",
                                    "stdin", "UTF-8",
                                  "version", 1)))
            return -1;
        rc = writer_append (&io->input, "header", header);
        json_decref (header);
        if (rc < 0 || commit (&io->input) < 0)
            return -1;
    }
    return 0;
}

/* The tasks run: give them what has come, and what will come.
 */
int shell_io_start (flux_shell_t *shell)
{
    struct io *io = shell->io;

    if (!(io->input_watch = flux_job_event_watch (shell->h,
                                                  shell->id,
                                                  "guest.input",
                                                  0))
        || flux_future_then (io->input_watch, -1., input_cb, shell) < 0)
        return shell_log_errno ("watch input");
    return 0;
}

int shell_io_init (flux_shell_t *shell)
{
    struct io *io;

    if (!(io = calloc (1, sizeof (*io))))
        return -1;
    shell->io = io;
    if (writer_init (&io->output, shell, "output") < 0
        || writer_init (&io->input, shell, "input") < 0)
        return -1;
    return output_init (shell) < 0 || input_init (shell) < 0 ? -1 : 0;
}

void shell_io_fini (flux_shell_t *shell)
{
    struct io *io = shell->io;

    if (io) {
        flux_future_destroy (io->input_watch);
        writer_fini (&io->input);
        writer_fini (&io->output);
        free (io);
        shell->io = NULL;
    }
}

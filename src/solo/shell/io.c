/* SPDX-License-Identifier: LGPL-3.0-only */
/* io.c - standard input and output of the tasks.
 *
 * Output goes line by line to the job's "output" eventlog (RFC 24) or to a
 * file.  Input arrives at the leader's service, which appends it to the
 * "input" eventlog that all shells of the job watch, or is read from a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base64.h"
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

struct file {
    struct file *next;
    int fd;
    char path[];
};

/* Where stdout or stderr goes.
 */
struct stream {
    const char *type;           // "kvs" or "file"
    const char *path;           // template
    int label;
};

struct io {
    struct writer output;
    struct writer input;
    struct stream streams[2];   // stdout, stderr
    const char *mode;
    struct file *files;
    const char *input_path;     // tasks open it themselves
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

static char *event_line (const char *name, const char *fmt, ...)
{
    va_list ap;
    json_t *entry;
    char *line;

    va_start (ap, fmt);
    entry = entry_vpack (0., name, fmt, ap);
    va_end (ap);
    line = entry ? entry_encode (entry) : NULL;
    json_decref (entry);
    return line;
}

static int writer_append (struct writer *w, const char *name, json_t *context)
{
    char *line = event_line (name, context ? "O" : NULL, context);
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

int shell_exec_event (flux_shell_t *shell, const char *name)
{
    struct writer w = { .shell = shell, .key = "exec.eventlog" };
    json_t *context = json_object_get (shell->event_context, name);
    int rc;

    w.buf = event_line (name, context ? "O" : NULL, context);
    w.len = w.buf ? strlen (w.buf) : 0;
    if ((rc = commit (&w)) == 0) {
        flux_future_destroy (w.commit); // the KVS keeps the order of commits
    }
    free (w.buf);
    return rc;
}

/* Output
 */

static struct stream *find_stream (struct io *io, const char *name)
{
    return &io->streams[streq (name, "stderr") ? 1 : 0];
}

/* Open a file once.  Only one shell may truncate a file that all share: the
 * leader does so before the others have left the first barrier.
 */
static struct file *open_file (flux_shell_t *shell, const char *path,
                               bool truncate)
{
    struct io *io = shell->io;
    struct file *file;

    for (file = io->files; file; file = file->next) {
        if (streq (file->path, path))
            return file;
    }
    if (!(file = calloc (1, sizeof (*file) + strlen (path) + 1)))
        return NULL;
    strcpy (file->path, path);
    file->fd = open (path,
                     O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC
                     | (truncate && !streq (io->mode, "append") ? O_TRUNC
                                                                : 0),
                     0666);
    if (file->fd < 0) {
        free (file);
        return NULL;
    }
    file->next = io->files;
    io->files = file;
    return file;
}

static struct file *task_file (struct shell_task *task, struct stream *stream)
{
    flux_shell_t *shell = task->shell;
    char *path = flux_shell_task_mustache_render (shell, task, stream->path);
    bool own = flux_shell_mustache_is_per_rank (shell, stream->path);
    struct file *file = NULL;

    if (path && !(file = open_file (shell, path, own || shell->rank == 0)))
        shell_die_errno (1, "error opening output file '%s'", path);
    free (path);
    return file;
}

static void write_file (struct shell_task *task, struct stream *stream,
                        const char *data, int len)
{
    struct file *file = task_file (task, stream);
    char label[16] = "";
    char *line;
    int n;

    if (stream->label)
        snprintf (label, sizeof (label), "%d: ", task->rank);
    /* One write, so that lines of different shells do not mix. */
    if (!file || (n = asprintf (&line, "%s%.*s", label, len, data)) < 0)
        return;
    if (n == (int)strlen (label) + len) {
        if (write (file->fd, line, n) < 0)
            shell_log_errno ("%s", file->path);
    }
    else if (write (file->fd, data, len) < 0) // contains NUL
        shell_log_errno ("%s", file->path);
    free (line);
}

static void write_kvs (struct shell_task *task, const char *stream,
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
void shell_io_task_output (struct shell_task *task, const char *name)
{
    struct stream *stream = find_stream (task->shell->io, name);
    bool to_file = streq (stream->type, "file");
    const char *data;
    int n;

    if ((n = flux_subprocess_getline (task->proc, name, &data)) < 0)
        shell_log_errno ("task %d: %s", task->rank, name);
    else if (n > 0 && to_file)
        write_file (task, stream, data, n);
    else if (n > 0)
        write_kvs (task, name, data, n);
    else if (!to_file)
        write_kvs (task, name, NULL, 0);
}

/* Announce a file in the output eventlog, and make it even if nothing is
 * ever written.
 */
static int redirect (flux_shell_t *shell, const char *name)
{
    struct stream *stream = find_stream (shell->io, name);
    char *path;
    bool own;

    if (!streq (stream->type, "file"))
        return 0;
    if (!stream->path) {
        shell_log_error ("%s: output to file without a path", name);
        return -1;
    }
    if (!(path = flux_shell_mustache_render (shell, stream->path)))
        return -1;
    own = flux_shell_mustache_is_per_rank (shell, stream->path);
    if (!strstr (path, "{{") // else it takes a task to tell
        && !open_file (shell, path, own || shell->rank == 0))
        shell_die_errno (1, "error opening output file '%s'", path);
    if (shell->rank == 0)
        shell_io_event (shell,
                        "redirect",
                        json_pack ("{s:s s:o s:s}",
                                   "stream", name,
                                   "rank",
                                     json_sprintf (shell->ntasks > 1 ? "[0-%d]"
                                                                     : "%d",
                                                   shell->ntasks - 1),
                                   "path", path),
                        false);
    free (path);
    return 0;
}

static int output_init (flux_shell_t *shell)
{
    struct io *io = shell->io;
    struct stream *out = &io->streams[0];
    struct stream *err = &io->streams[1];
    json_t *conf;

    io->mode = "truncate";
    out->type = "kvs";
    if ((conf = json_object_get (shell->options, "output"))
        && json_unpack (conf,
                        "{s?s s?{s?s s?s s?b}}",
                        "mode", &io->mode,
                        "stdout",
                          "type", &out->type,
                          "path", &out->path,
                          "label", &out->label) < 0)
        return shell_log_errn (EINVAL, "invalid output options");
    *err = *out; // unless set
    if (conf
        && json_unpack (conf,
                        "{s?{s?s s?s s?b}}",
                        "stderr",
                          "type", &err->type,
                          "path", &err->path,
                          "label", &err->label) < 0)
        return shell_log_errn (EINVAL, "invalid output options");
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
    if (redirect (shell, "stdout") < 0 || redirect (shell, "stderr") < 0)
        return -1;
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

    if (flux_request_unpack (msg, NULL, "o", &context) < 0)
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
        struct shell_task *task = &shell->tasks[i];
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

static int input_init (flux_shell_t *shell)
{
    struct io *io = shell->io;
    const char *type = "service";
    json_t *header;
    int rc;

    if (flux_shell_getopt_unpack (shell,
                                  "input",
                                  "{s?{s?s s?s}}",
                                  "stdin",
                                    "type", &type,
                                    "path", &io->input_path) < 0)
        return shell_log_errn (EINVAL, "invalid input options");
    if (streq (type, "file")) {
        if (!io->input_path || access (io->input_path, R_OK) < 0)
            shell_die_errno (1, "error opening input file '%s'",
                             io->input_path ? io->input_path : "");
        return 0;
    }
    io->input_path = NULL;
    if (shell->rank == 0) {
        if (flux_shell_service_register (shell, "stdin", stdin_cb, shell) < 0)
            return shell_log_errno ("register stdin service");
        if (!(header = json_pack ("{s:i s:{s:s} s:{s:i} s:{}}",
                                  "version", 1,
                                  "encoding",
                                    "stdin", "UTF-8",
                                  "count",
                                    "stdin", 1,
                                  "options")))
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

    if (io->input_path)
        return 0;
    if (!(io->input_watch = flux_job_event_watch (shell->h,
                                                  shell->id,
                                                  "guest.input",
                                                  0))
        || flux_future_then (io->input_watch, -1., input_cb, shell) < 0)
        return shell_log_errno ("watch input");
    return 0;
}

/* In the task, before exec(2).
 */
void shell_io_task_exec (struct shell_task *task)
{
    const char *path = task->shell->io->input_path;
    int fd;

    if (path) {
        if ((fd = open (path, O_RDONLY)) < 0
            || dup2 (fd, STDIN_FILENO) < 0) {
            fprintf (stderr, "%s: %s\n", path, strerror (errno));
            _exit (1);
        }
        close (fd);
    }
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
        struct file *file;
        flux_future_destroy (io->input_watch);
        writer_fini (&io->input);
        writer_fini (&io->output);
        while ((file = io->files)) {
            io->files = file->next;
            close (file->fd);
            free (file);
        }
        free (io);
        shell->io = NULL;
    }
}

// vi: ts=4 sw=4 expandtab

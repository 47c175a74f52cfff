/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Crews of processes that work on jobspecs: a line of JSON in, a line out. The
 * process with the least to do gets the next request; another is started when
 * all have much to do.
 */
#include <signal.h>
#include <sys/wait.h>

#include "libutil/errno_safe.h"
#include "ingest.h"

enum { CREW_SIZE = 4, BACKLOG = 32 };
static const double idle_timeout = 5.;

extern char **environ;

struct request {
    struct request *next;
    crew_f cb;
    void *arg;
};

struct worker {
    struct crew *crew;
    struct worker *next;
    flux_subprocess_t *p;
    flux_watcher_t *timer;
    bool retired;               // its standard input is closed
    struct request *first;
    struct request **last;
    size_t count;
};

struct crew {
    flux_t *h;
    const char *command;
    json_t *plugins;
    json_t *args;
    struct worker *workers;
    int requests;
    int errors;
};

static void answer (struct worker *w, json_t *data, const char *error)
{
    struct request *req = w->first;

    if (!(w->first = req->next))
        w->last = &w->first;
    w->count--;
    if (error)
        w->crew->errors++;
    req->cb (req->arg, data, error);
    free (req);
}

static void fail_all (struct worker *w, int errnum, const char *error)
{
    while (w->count > 0) {
        errno = errnum;
        answer (w, NULL, error);
    }
}

static void worker_destroy (struct worker *w)
{
    if (w) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (w->timer);
        flux_subprocess_destroy (w->p);
        free (w);
    }
}

static void retire (struct worker *w)
{
    if (!w->retired) {
        flux_watcher_stop (w->timer);
        (void)flux_subprocess_close (w->p, "stdin");
        w->retired = true;
    }
}

static void idle_cb (flux_reactor_t *r, flux_watcher_t *watcher,
                     int revents, void *arg)
{
    retire (arg);
}

static void completion_cb (flux_subprocess_t *p)
{
    struct worker *w = flux_subprocess_aux_get (p, "worker");
    struct worker **wp = &w->crew->workers;
    int status = flux_subprocess_status (p);

    if (status != 0)
        flux_log (w->crew->h, LOG_ERR, "%s: %s %d", w->crew->command,
                  WIFEXITED (status) ? "exited with rc" : "killed by signal",
                  WIFEXITED (status) ? WEXITSTATUS (status)
                                     : WTERMSIG (status));
    while (*wp != w)
        wp = &(*wp)->next;
    *wp = w->next;
    fail_all (w, EPROTO, "Unrecoverable error: worker unexpectedly exited");
    worker_destroy (w);
}

static void one_result (struct worker *w, const char *line)
{
    int errnum = EINVAL;
    const char *text = "invalid answer of a plugin process";
    json_t *data = NULL;
    json_t *o = json_loads (line, 0, NULL);

    if (w->count == 0)
        flux_log (w->crew->h, LOG_ERR, "%s: unexpected output: %s",
                  w->crew->command, line);
    else {
        if (o && json_unpack (o, "{s:i}", "errnum", &errnum) == 0) {
            text = errnum ? "rejected by a plugin" : NULL;
            (void)json_unpack (o, "{s?s s?o}", "errstr", &text, "data", &data);
        }
        errno = errnum;
        answer (w, data, errnum ? text : NULL);
        if (w->count == 0 && !w->retired) {
            flux_timer_watcher_reset (w->timer, idle_timeout, 0.);
            flux_watcher_start (w->timer);
        }
    }
    json_decref (o);
}

static void output_cb (flux_subprocess_t *p, const char *stream)
{
    struct worker *w = flux_subprocess_aux_get (p, "worker");
    const char *line;

    if (flux_subprocess_read_trimmed_line (p, stream, &line) <= 0)
        return;
    if (streq (stream, "stdout"))
        one_result (w, line);
    else
        flux_log (w->crew->h, LOG_DEBUG, "%s: %s", w->crew->command, line);
}

/* Array members joined by commas; NULL only when out of memory. */
static char *join (json_t *array)
{
    char *s = strdup ("");
    size_t index;
    json_t *o;

    json_array_foreach (array, index, o) {
        char *old = s;
        if (asprintf (&s, "%s%s%s", old, index ? "," : "",
                      json_string_value (o)) < 0)
            s = NULL;
        free (old);
        if (!s)
            break;
    }
    return s;
}

static flux_cmd_t *command (struct crew *crew)
{
    flux_cmd_t *cmd = flux_cmd_create (0, NULL, environ);
    char *plugins = join (crew->plugins);
    size_t index;
    json_t *arg;
    int rc = cmd && plugins ? 0 : -1;

    if (rc == 0) {
        rc |= flux_cmd_argv_append (cmd, "flux");
        rc |= flux_cmd_argv_append (cmd, crew->command);
        if (*plugins)
            rc |= flux_cmd_argv_appendf (cmd, "--plugins=%s", plugins);
        json_array_foreach (crew->args, index, arg)
            rc |= flux_cmd_argv_append (cmd, json_string_value (arg));
    }
    free (plugins);
    if (rc == 0)
        return cmd;
    flux_cmd_destroy (cmd);
    return NULL;
}

static struct worker *worker_create (struct crew *crew)
{
    static const flux_subprocess_ops_t ops = {
        .on_completion = completion_cb,
        .on_stdout = output_cb,
        .on_stderr = output_cb,
    };
    flux_reactor_t *r = flux_get_reactor (crew->h);
    flux_cmd_t *cmd = command (crew);
    struct worker *w = calloc (1, sizeof (*w));

    if (!cmd || !w
        || !(w->timer = flux_timer_watcher_create (r, 0., 0., idle_cb, w))
        || !(w->p = flux_local_exec (r, 0, cmd, &ops))
        || flux_subprocess_aux_set (w->p, "worker", w, NULL) < 0) {
        worker_destroy (w);
        w = NULL;
    }
    else {
        w->crew = crew;
        w->last = &w->first;
        w->next = crew->workers;
        crew->workers = w;
    }
    flux_cmd_destroy (cmd);
    return w;
}

static struct worker *choose (struct crew *crew)
{
    struct worker *best = NULL;
    int running = 0;

    for (struct worker *w = crew->workers; w; w = w->next) {
        if (w->retired)
            continue;
        running++;
        if (!best || w->count < best->count)
            best = w;
    }
    if (!best || (best->count >= BACKLOG && running < CREW_SIZE))
        best = worker_create (crew);
    return best;
}

int crew_request (struct crew *crew, json_t *request, crew_f cb, void *arg)
{
    struct worker *w = choose (crew);
    struct request *req = calloc (1, sizeof (*req));
    char *s = json_dumps (request, JSON_COMPACT);

    if (!w || !req || !s
        || flux_subprocess_write (w->p, "stdin", s, strlen (s)) < 0
        || flux_subprocess_write (w->p, "stdin", "\n", 1) < 0) {
        free (req);
        free (s);
        return -1;
    }
    *req = (struct request){ .cb = cb, .arg = arg };
    *w->last = req;
    w->last = &req->next;
    w->count++;
    flux_watcher_stop (w->timer);
    crew->requests++;
    free (s);
    return 0;
}

void crew_configure (struct crew *crew, json_t *plugins, json_t *args)
{
    json_decref (crew->plugins);
    json_decref (crew->args);
    crew->plugins = json_incref (plugins);
    crew->args = json_incref (args);
    for (struct worker *w = crew->workers; w; w = w->next)
        retire (w);
}

void crew_destroy (struct crew *crew)
{
    struct worker *w;

    if (!crew)
        return;
    while ((w = crew->workers)) {
        pid_t pid = flux_subprocess_pid (w->p);
        crew->workers = w->next;
        fail_all (w, ENOSYS, "job-ingest is unloading");
        if (flux_subprocess_active (w->p)) {
            (void)kill (pid, SIGKILL);
            (void)waitpid (pid, NULL, 0);
        }
        worker_destroy (w);
    }
    json_decref (crew->plugins);
    json_decref (crew->args);
    free (crew);
}

struct crew *crew_create (flux_t *h, const char *command)
{
    struct crew *crew;

    if ((crew = calloc (1, sizeof (*crew)))) {
        crew->h = h;
        crew->command = command;
    }
    return crew;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See process.h.
 */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "base/process.h"
#include "base/timer.h"

/* Upper bound on logged lines of output.
 */
#define LINES_MAX 32

/* How long to wait for a killed process (s). Its children may have left the process
 * group, and keep its output open.
 */
#define KILLED_GRACE 5.

/* Name of the aux data of a subprocess: its struct process.
 */
#define PROCESS_AUX "dws::process"

struct process {
    flux_t *h;
    char *name;
    flux_subprocess_t *p;
    flux_watcher_t *timer;      // of the time limit, or of the end
    double limit;
    int lines;
    int status;
    bool killed;
    bool ended;
    process_f cb;
    void *arg;
};

/* Defer the caller's callback to the timer: that may destroy the process, which
 * callbacks of the subprocess must not do.
 */
static void process_end (struct process *process, int status)
{
    process->status = status;
    process->ended = true;
    timer_start (process->timer, 0.);
}

static void process_kill (struct process *process)
{
    flux_future_t *f = flux_subprocess_kill (process->p, SIGKILL);

    flux_future_destroy (f);
}

static void process_timer_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                              void *arg)
{
    struct process *process = arg;

    if (!process->ended && !process->killed) {
        process->killed = true;
        safe_log (process->h, LOG_ERR, "%s: killed after %g s", process->name,
                  process->limit);
        process_kill (process);
        timer_start (process->timer, KILLED_GRACE);
        return;
    }
    process->cb (process->ended ? process->status : -1, process->arg);
}

static void process_completion_cb (flux_subprocess_t *p)
{
    process_end (flux_subprocess_aux_get (p, PROCESS_AUX),
                 flux_subprocess_status (p));
}

static void process_state_cb (flux_subprocess_t *p,
                              flux_subprocess_state_t state)
{
    struct process *process = flux_subprocess_aux_get (p, PROCESS_AUX);

    if (state == FLUX_SUBPROCESS_FAILED) {
        safe_log (process->h, LOG_ERR, "%s: cannot be started: is it there, and "
                  "executable?", process->name);
        process_end (process, -1);
    }
}

static void process_output_cb (flux_subprocess_t *p, const char *stream)
{
    struct process *process = flux_subprocess_aux_get (p, PROCESS_AUX);
    const char *line;
    int len = flux_subprocess_getline (p, stream, &line);

    if (len > 0 && process->lines++ < LINES_MAX)
        safe_log (process->h, LOG_ERR, "%s: %.*s", process->name,
                  (int)strcspn (line, "\n"), line);
}

static flux_cmd_t *create_cmd (json_t *argv)
{
    flux_cmd_t *cmd;
    size_t index;
    json_t *word;

    if (!(cmd = flux_cmd_create (0, NULL, environ)))
        return NULL;
    json_array_foreach (argv, index, word) {
        if (flux_cmd_argv_append (cmd, json_string_value (word)) < 0) {
            ERRNO_SAFE (flux_cmd_destroy (cmd));
            return NULL;
        }
    }
    return cmd;
}

/* Execute the command by the broker's rexec service or, in the embedded engine, which
 * has none, in this process.
 */
static flux_subprocess_t *execute (flux_t *h, const flux_cmd_t *cmd)
{
    static const flux_subprocess_ops_t ops = {
        .on_completion = process_completion_cb,
        .on_state_change = process_state_cb,
        .on_stdout = process_output_cb,
        .on_stderr = process_output_cb,
    };
    flux_subprocess_t *p = flux_rexec (h, 0, 0, cmd, &ops);

    if (!p && errno == ENOSYS)
        p = flux_local_exec (flux_get_reactor (h), 0, cmd, &ops);
    return p;
}

static int start (struct process *process, json_t *argv, const char *input)
{
    flux_cmd_t *cmd;

    if (!(cmd = create_cmd (argv)))
        return -1;
    process->p = execute (process->h, cmd);
    ERRNO_SAFE (flux_cmd_destroy (cmd));
    if (!process->p
        || flux_subprocess_aux_set (process->p, PROCESS_AUX, process, NULL) < 0
        || flux_subprocess_write (process->p, "stdin", input,
                                  strlen (input)) < 0
        || flux_subprocess_close (process->p, "stdin") < 0)
        return -1;
    if (process->limit >= 0.)
        timer_start (process->timer, process->limit);
    return 0;
}

struct process *process_create (flux_t *h, const char *name, json_t *argv,
                                const char *input, double limit,
                                process_f cb, void *arg)
{
    struct process *process;

    if (!(process = calloc (1, sizeof (*process))))
        return NULL;
    process->h = h;
    process->limit = limit;
    process->cb = cb;
    process->arg = arg;
    if (!(process->name = strdup (name))
        || !(process->timer = timer_make (h, process_timer_cb, process))
        || start (process, argv, input) < 0) {
        process_destroy (process);
        return NULL;
    }
    return process;
}

void process_destroy (struct process *process)
{
    if (process) {
        ERRNO_SAFE_BLOCK;
        if (process->p && !process->ended)
            process_kill (process);
        flux_subprocess_destroy (process->p);
        flux_watcher_destroy (process->timer);
        free (process->name);
        free (process);
    }
}

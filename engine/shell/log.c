/* SPDX-License-Identifier: LGPL-3.0-only */
/* log.c - the shell's log, which is part of the job's output eventlog, and
 * the functions that raise exceptions.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shell.h"

flux_shell_t *the_shell;

void shell_log_init (flux_shell_t *shell)
{
    shell->log_level = FLUX_SHELL_NOTICE;
    the_shell = shell;
}

static json_t *log_context (int level, const char *component,
                            const char *file, int line, const char *message)
{
    json_t *o = json_pack ("{s:i s:i s:s}",
                           "rank", the_shell->rank,
                           "level", level,
                           "message", message);

    if (o && component)
        json_object_set_new (o, "component", json_string (component));
    if (o && file) {
        json_object_set_new (o, "file", json_string (file));
        json_object_set_new (o, "line", json_integer (line));
    }
    return o;
}

/* Tell plugins that listen, and append to the eventlog.  Before there is
 * one, and if a log callback logs itself, standard error gets it.
 */
static void log_message (int level, const char *component,
                         const char *file, int line, const char *message)
{
    flux_shell_t *shell = the_shell;
    flux_plugin_arg_t *args;
    json_t *context;

    if (!shell || level > shell->log_level)
        return;
    if (shell->in_log || !shell->io) {
        fprintf (stderr, "flux-shell: %s\n", message);
        return;
    }
    if (!(context = log_context (level, component, file, line, message)))
        return;
    shell->in_log = true;
    if (shell->nplugins > 0 && (args = flux_plugin_arg_create ())) {
        if (flux_plugin_arg_pack (args,
                                  FLUX_PLUGIN_ARG_IN,
                                  "O",
                                  context) == 0)
            (void)flux_shell_plugstack_call (shell, "shell.log", args);
        flux_plugin_arg_destroy (args);
    }
    shell_io_event (shell, "log", context, level == FLUX_SHELL_FATAL);
    shell->in_log = false;
}

enum { TEXT_SIZE = 4096 };

/* Format into 'buf', with the text of errnum if it is not 0.
 */
static void format (char *buf, size_t size, int errnum,
                    const char *fmt, va_list ap)
{
    int n = vsnprintf (buf, size, fmt, ap);

    if (n > 0 && n < (int)size && buf[n - 1] == '\n')
        buf[--n] = '\0';
    if (errnum && n >= 0 && n < (int)size)
        snprintf (buf + n, size - n, ": %s", strerror (errnum));
}

/* Make 'text', an array, of what comes after fmt.
 */
#define FORMAT(text, errnum, fmt) do { \
    va_list ap; \
    va_start (ap, fmt); \
    format (text, sizeof (text), errnum, fmt, ap); \
    va_end (ap); \
} while (0)

void flux_shell_log (const char *component, int level,
                     const char *file, int line, const char *fmt, ...)
{
    char text[TEXT_SIZE];

    FORMAT (text, 0, fmt);
    log_message (level, component, file, line, text);
}

int flux_shell_err (const char *component, const char *file, int line,
                    int errnum, const char *fmt, ...)
{
    char text[TEXT_SIZE];

    FORMAT (text, errnum, fmt);
    log_message (FLUX_SHELL_ERROR, component, file, line, text);
    errno = errnum;
    return -1;
}

static void raise_exception (const char *type, int severity, int wait_status,
                             const char *note)
{
    flux_shell_t *shell = the_shell;
    flux_future_t *f;
    json_t *o;

    if (!shell || !shell->h || shell->exception_raised)
        return;
    if (!(o = json_pack ("{s:I s:s s:i s:s}",
                         "id", shell->id,
                         "type", type,
                         "severity", severity,
                         "note", note)))
        return;
    if (wait_status >= 0)
        json_object_set_new (o, "wait_status", json_integer (wait_status));
    if ((f = flux_rpc_pack (shell->h,
                            "job-manager.raise",
                            FLUX_NODEID_ANY,
                            0,
                            "O",
                            o))
        && flux_future_get (f, NULL) == 0)
        shell->exception_raised = true;
    else
        fprintf (stderr, "flux-shell: raise: %s\n", strerror (errno));
    flux_future_destroy (f);
    json_decref (o);
}

void flux_shell_raise (const char *type, int severity, const char *fmt, ...)
{
    char text[TEXT_SIZE];

    FORMAT (text, 0, fmt);
    raise_exception (type, severity, -1, text);
}

void flux_shell_raise_exit_status (int wait_status, const char *fmt, ...)
{
    char text[TEXT_SIZE];

    FORMAT (text, 0, fmt);
    raise_exception ("exec", 0, wait_status, text);
}

void flux_shell_fatal (const char *component, const char *file, int line,
                       int errnum, int exit_code, const char *fmt, ...)
{
    char text[TEXT_SIZE];

    FORMAT (text, errnum, fmt);
    log_message (FLUX_SHELL_FATAL, component, file, line, text);
    if (the_shell) {
        signal (SIGTERM, SIG_IGN); // the exec service's answer to the exception
        flux_shell_killall (the_shell, SIGKILL);
        raise_exception ("exec", 0, -1, text);
    }
    exit (exit_code);
}

int flux_shell_log_setlevel (int level, const char *dest)
{
    if (!the_shell || level < FLUX_SHELL_QUIET || level > FLUX_SHELL_TRACE) {
        errno = EINVAL;
        return -1;
    }
    the_shell->log_level = level;
    return 0;
}

// vi: ts=4 sw=4 expandtab

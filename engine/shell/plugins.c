/* SPDX-License-Identifier: LGPL-3.0-only */
/* plugins.c - loads the shell's plugins, and defines what they may call. */
#include <errno.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/va.h"
#include "shell.h"

#define TEXT_SIZE 4096

flux_shell_t the_shell;

/* Loading */

/* A plugin replaces one of its name that was loaded before. */
static int load_plugin (flux_shell_t *shell, const char *path)
{
    flux_plugin_t *p = flux_plugin_create ();
    flux_plugin_t **plugins = realloc (shell->plugins, (shell->nplugins + 1)
                                                       * sizeof (plugins[0]));

    if (plugins)
        shell->plugins = plugins;
    if (!p || !plugins || flux_plugin_load_dso (p, path) < 0) {
        shell_log_error ("%s: %s", path, p ? flux_plugin_strerror (p) : "");
        flux_plugin_destroy (p);
        return -1;
    }
    for (size_t i = 0; i < shell->nplugins; i++) {
        if (streq (flux_plugin_get_name (plugins[i]),
                   flux_plugin_get_name (p))) {
            flux_plugin_destroy (plugins[i]);
            plugins[i] = p;
            return 0;
        }
    }
    plugins[shell->nplugins++] = p;
    return 0;
}

static int load_folder (flux_shell_t *shell, const char *path, int len)
{
    char pattern[PATH_MAX];
    glob_t g = { 0 };
    int rc = 0;

    snprintf (pattern, sizeof (pattern), "%.*s/*.so", len, path);
    if (glob (pattern, 0, NULL, &g) == 0) {
        for (size_t i = 0; i < g.gl_pathc; i++) {
            if (load_plugin (shell, g.gl_pathv[i]) < 0)
                rc = -1;
        }
    }
    globfree (&g);
    return rc;
}

/* The attribute names the folders, separated by colons.  Without the
 * attribute plugins are in the folder of this installation.
 */
int shell_plugins_load (flux_shell_t *shell)
{
    const char *path = flux_attr_get (shell->h, "conf.shell_pluginpath");
    char exe[PATH_MAX] = "";
    char folder[PATH_MAX];
    int rc = 0;

    if (!path) {
        if (readlink ("/proc/self/exe", exe, sizeof (exe) - 1) < 0
            || snprintf (folder, sizeof (folder), "%s/" SHELL_PLUGINS_FROM_EXE,
                         dirname (exe)) >= (int)sizeof (folder))
            return shell_log_errno ("plugin path");
        path = folder;
    }
    while (*path) {
        int len = strcspn (path, ":");
        if (load_folder (shell, path, len) < 0)
            rc = -1;
        path += len + (path[len] == ':');
    }
    return rc;
}

int shell_plugins_call (flux_shell_t *shell, const char *topic)
{
    int rc = 0;

    for (size_t i = 0; i < shell->nplugins; i++) {
        if (flux_plugin_call (shell->plugins[i], topic, NULL) < 0) {
            shell_log_error ("plugin '%s': %s failed",
                             flux_plugin_get_name (shell->plugins[i]), topic);
            rc = -1;
        }
    }
    return rc;
}

void shell_plugins_unload (flux_shell_t *shell)
{
    while (shell->nplugins > 0)
        flux_plugin_destroy (shell->plugins[--shell->nplugins]);
    free (shell->plugins);
}

/* For plugins */

flux_shell_t *flux_plugin_get_shell (flux_plugin_t *p)
{
    return p ? &the_shell : NULL;
}

flux_t *flux_shell_get_flux (flux_shell_t *shell)
{
    return shell->h;
}

int flux_shell_info_unpack (flux_shell_t *shell, const char *fmt, ...)
{
    if (VA (fmt, json_vunpack_ex (shell->info, NULL, 0, fmt, ap)) == 0)
        return 0;
    errno = EPROTO;
    return -1;
}

/* The environment is part of the jobspec, where it changes too. */
int flux_shell_setenvf (flux_shell_t *shell, int overwrite, const char *name,
                        const char *fmt, ...)
{
    char *value;
    int rc;

    if (!overwrite && json_object_get (shell->env, name))
        return 0;
    if (VA (fmt, vasprintf (&value, fmt, ap)) < 0)
        return -1;
    rc = json_object_set_new (shell->env, name, json_string (value));
    free (value);
    if (rc < 0)
        errno = EINVAL;
    return rc;
}

/* Log.  A message is an event of the output eventlog; until the shell has
 * one, standard error gets the message.
 */

static void log_message (const char *component, int level, const char *file,
                         int line, int errnum, const char *fmt, va_list ap,
                         char *text)
{
    int verbose = json_integer_value (json_object_get (the_shell.options,
                                                       "verbose"));
    int n = vsnprintf (text, TEXT_SIZE, fmt, ap);

    if (errnum && n >= 0 && n < TEXT_SIZE)
        snprintf (text + n, TEXT_SIZE - n, ": %s", strerror (errnum));
    if (level > FLUX_SHELL_NOTICE + verbose)
        return;
    if (!the_shell.io)
        fprintf (stderr, "flux-shell: %s\n", text);
    else
        shell_io_event (&the_shell, "log",
                        json_pack ("{s:i s:i s:s s:s* s:s s:i}",
                                   "rank", the_shell.rank,
                                   "level", level,
                                   "message", text,
                                   "component", component,
                                   "file", file,
                                   "line", line),
                        level == FLUX_SHELL_FATAL);
}

void flux_shell_log (const char *component, int level, const char *file,
                     int line, const char *fmt, ...)
{
    char text[TEXT_SIZE];

    VA_DO (fmt, log_message (component, level, file, line, 0, fmt, ap, text));
}

int flux_shell_err (const char *component, const char *file, int line,
                    int errnum, const char *fmt, ...)
{
    char text[TEXT_SIZE];

    VA_DO (fmt, log_message (component, FLUX_SHELL_ERROR, file, line, errnum,
                             fmt, ap, text));
    errno = errnum;
    return -1;
}

void shell_killall (flux_shell_t *shell, int sig)
{
    for (int i = 0; shell->tasks && i < shell->ntasks_local; i++) {
        flux_subprocess_t *p = shell->tasks[i].proc;
        if (p && flux_subprocess_active (p))
            flux_future_destroy (flux_subprocess_kill (p, sig));
    }
}

/* Log, end the tasks, and raise an exception on the job. */
void flux_shell_fatal (const char *component, const char *file, int line,
                       int errnum, int exit_code, const char *fmt, ...)
{
    flux_shell_t *shell = &the_shell;
    char text[TEXT_SIZE];
    flux_future_t *f;

    VA_DO (fmt, log_message (component, FLUX_SHELL_FATAL, file, line, errnum,
                             fmt, ap, text));
    signal (SIGTERM, SIG_IGN);  // with which job-exec answers the exception
    shell_killall (shell, SIGKILL);
    if (shell->h
        && (!(f = flux_rpc_pack (shell->h, "job-manager.raise",
                                 FLUX_NODEID_ANY, 0, "{s:I s:s s:i s:s}",
                                 "id", shell->id,
                                 "type", "exec",
                                 "severity", 0,
                                 "note", text))
            || flux_future_get (f, NULL) < 0))
        fprintf (stderr, "flux-shell: raise: %s\n", strerror (errno));
    exit (exit_code);
}

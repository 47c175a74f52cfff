/* SPDX-License-Identifier: LGPL-3.0-only */
/* plugins.c - the plugin stack of the job shell, and what plugins may call
 * that is not about the job itself: services, events, tasks.
 */
#include <errno.h>
#include <glob.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/va.h"
#include "shell.h"

#define SHELL_KEY "flux-shell"

flux_shell_t *flux_plugin_get_shell (flux_plugin_t *p)
{
    return flux_plugin_aux_get (p, SHELL_KEY);
}

/* The last plugin of a name wins.
 */
static void remove_same_name (flux_shell_t *shell, flux_plugin_t *p)
{
    const char *name = flux_plugin_get_name (p);

    for (size_t i = 0; i < shell->nplugins; i++) {
        const char *other = flux_plugin_get_name (shell->plugins[i]);
        if (name && other && streq (name, other)) {
            flux_plugin_destroy (shell->plugins[i]);
            shell->nplugins--;
            memmove (&shell->plugins[i],
                     &shell->plugins[i + 1],
                     (shell->nplugins - i) * sizeof (shell->plugins[0]));
            break;
        }
    }
}

static int load_plugin (flux_shell_t *shell, const char *path)
{
    flux_plugin_t *p = flux_plugin_create ();

    if (!p
        || flux_plugin_aux_set (p, SHELL_KEY, shell, NULL) < 0
        || flux_plugin_load_dso (p, path) < 0) {
        shell_log_error ("%s: %s", path, p ? flux_plugin_strerror (p) : "");
        flux_plugin_destroy (p);
        return -1;
    }
    remove_same_name (shell, p);
    shell->plugins[shell->nplugins++] = p;
    return 0;
}

/* The folder of this installation.
 */
static int default_folder (char *buf, int size)
{
    char exe[PATH_MAX];
    ssize_t n = readlink ("/proc/self/exe", exe, sizeof (exe) - 1);

    if (n < 0)
        return -1;
    exe[n] = '\0';
    return snprintf (buf,
                     size,
                     "%s/" SHELL_PLUGINS_FROM_EXE,
                     dirname (exe)) < size ? 0 : -1;
}

static int load_folder (flux_shell_t *shell, const char *path, int len)
{
    char pattern[PATH_MAX];
    flux_plugin_t **plugins;
    glob_t g = { 0 };
    int rc = 0;

    snprintf (pattern, sizeof (pattern), "%.*s/*.so", len, path);
    if (glob (pattern, 0, NULL, &g) == 0) {
        if (!(plugins = realloc (shell->plugins,
                                 (shell->nplugins + g.gl_pathc)
                                 * sizeof (plugins[0])))) {
            globfree (&g);
            return -1;
        }
        shell->plugins = plugins;
        for (size_t i = 0; i < g.gl_pathc; i++) {
            if (load_plugin (shell, g.gl_pathv[i]) < 0)
                rc = -1;
        }
    }
    globfree (&g);
    return rc;
}

/* Plugins are in the folders of the attribute, separated by colons.
 */
int shell_plugins_load (flux_shell_t *shell)
{
    const char *path = flux_attr_get (shell->h, "conf.shell_pluginpath");
    char folder[PATH_MAX];
    int rc = 0;

    if (!path) {
        if (default_folder (folder, sizeof (folder)) < 0)
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

void shell_plugins_unload (flux_shell_t *shell)
{
    while (shell->nplugins > 0)
        flux_plugin_destroy (shell->plugins[--shell->nplugins]);
    free (shell->plugins);
    shell->plugins = NULL;
}

int flux_shell_plugstack_call (flux_shell_t *shell, const char *topic,
                               flux_plugin_arg_t *args)
{
    int rc = 0;

    if (!shell || !topic) {
        errno = EINVAL;
        return -1;
    }
    for (size_t i = 0; i < shell->nplugins; i++) {
        flux_plugin_t *p = shell->plugins[i];
        if (flux_plugin_call (p, topic, args) < 0) {
            // A log callback that fails must not log.
            if (!strstarts (topic, "shell.log"))
                shell_log_error ("plugin '%s': %s failed",
                                 flux_plugin_get_name (p),
                                 topic);
            rc = -1;
        }
    }
    return rc;
}

flux_t *flux_shell_get_flux (flux_shell_t *shell)
{
    if (!shell) {
        errno = EINVAL;
        return NULL;
    }
    return shell->h;
}

/* Aux items live as long as the handle, which the shell closes last.
 */
int flux_shell_aux_set (flux_shell_t *shell, const char *name, void *aux,
                        flux_free_f free_fn)
{
    char key[256];

    if (!shell || (!name && !aux)) {
        errno = EINVAL;
        return -1;
    }
    snprintf (key, sizeof (key), SHELL_KEY "::%s", name ? name : "");
    return flux_aux_set (shell->h, name ? key : NULL, aux, free_fn);
}

void *flux_shell_aux_get (flux_shell_t *shell, const char *name)
{
    char key[256];

    if (!shell || !name) {
        errno = EINVAL;
        return NULL;
    }
    snprintf (key, sizeof (key), SHELL_KEY "::%s", name);
    return flux_aux_get (shell->h, key);
}

/* Services and events. The name of the leader's service is the one that the
 * shell.init event announces; the others have their rank behind it.
 */

static int service_topic (flux_shell_t *shell, int rank, const char *method,
                          char *buf, int size)
{
    char suffix[16] = "";

    if (rank > 0)
        snprintf (suffix, sizeof (suffix), "-%d", rank);
    if (snprintf (buf,
                  size,
                  "%s%s%s%s",
                  shell->service,
                  suffix,
                  method ? "." : "",
                  method ? method : "") >= size) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

struct service {
    flux_msg_handler_f cb;
    void *arg;
};

/* Only the job's owner and the instance's may call.
 */
static void service_cb (flux_t *h, flux_msg_handler_t *mh,
                        const flux_msg_t *msg, void *arg)
{
    struct service *service = arg;

    if (flux_msg_authorize (msg, getuid ()) < 0)
        respond_error (h, msg, NULL);
    else
        service->cb (h, mh, msg, service->arg);
}

static int add_handler (flux_shell_t *shell, struct flux_match match,
                        flux_msg_handler_f cb, void *arg)
{
    flux_msg_handler_t *mh = flux_msg_handler_create (shell->h, match, cb, arg);
    flux_free_f destroy = (flux_free_f)flux_msg_handler_destroy;

    if (!mh || flux_aux_set (shell->h, NULL, mh, destroy) < 0) {
        flux_msg_handler_destroy (mh);
        return -1;
    }
    if (match.typemask == FLUX_MSGTYPE_REQUEST)
        flux_msg_handler_allow_rolemask (mh, FLUX_ROLE_USER);
    flux_msg_handler_start (mh);
    return 0;
}

int flux_shell_service_register (flux_shell_t *shell, const char *method,
                                 flux_msg_handler_f cb, void *arg)
{
    struct flux_match match = FLUX_MATCH_REQUEST;
    char topic[128];
    struct service *service;
    flux_future_t *f;

    if (!shell || !method || !cb) {
        errno = EINVAL;
        return -1;
    }
    if (service_topic (shell, shell->rank, NULL, topic, sizeof (topic)) < 0)
        return -1;
    if (!flux_shell_aux_get (shell, "service")) {
        if (!(f = flux_service_register (shell->h, topic)))
            return -1;
        if (flux_shell_aux_set (shell,
                                "service",
                                f,
                                (flux_free_f)flux_future_destroy) < 0) {
            flux_future_destroy (f);
            return -1;
        }
        if (flux_future_get (f, NULL) < 0)
            return -1;
    }
    if (service_topic (shell, shell->rank, method, topic, sizeof (topic)) < 0
        || !(service = calloc (1, sizeof (*service))))
        return -1;
    service->cb = cb;
    service->arg = arg;
    if (flux_shell_aux_set (shell, NULL, service, free) < 0) {
        free (service);
        return -1;
    }
    match.topic_glob = topic;
    return add_handler (shell, match, service_cb, service);
}

flux_future_t *flux_shell_rpc_pack (flux_shell_t *shell, const char *method,
                                    int shell_rank, int flags,
                                    const char *fmt, ...)
{
    char topic[128];

    if (!shell || !method || !fmt
        || shell_rank < 0 || shell_rank >= shell->size) {
        errno = EINVAL;
        return NULL;
    }
    if (service_topic (shell, shell_rank, method, topic, sizeof (topic)) < 0)
        return NULL;
    return VA (fmt, flux_rpc_vpack (shell->h, topic, FLUX_NODEID_ANY, flags,
                                    fmt, ap));
}

int flux_shell_add_event_handler (flux_shell_t *shell, const char *subtopic,
                                  flux_msg_handler_f cb, void *arg)
{
    struct flux_match match = FLUX_MATCH_EVENT;
    char topic[128];

    if (!shell || !subtopic || !cb) {
        errno = EINVAL;
        return -1;
    }
    snprintf (topic,
              sizeof (topic),
              "shell-%ju.%s",
              (uintmax_t)shell->id,
              subtopic);
    match.topic_glob = topic;
    return add_handler (shell, match, cb, arg);
}

int flux_shell_add_event_context (flux_shell_t *shell, const char *name,
                                  int flags, const char *fmt, ...)
{
    json_t *context;
    json_t *o;
    int rc;

    if (!shell || !name || !fmt) {
        errno = EINVAL;
        return -1;
    }
    context = VA (fmt, json_vpack_ex (NULL, 0, fmt, ap));
    if (!context) {
        errno = EINVAL;
        return -1;
    }
    if ((o = json_object_get (shell->event_context, name))) {
        rc = json_object_update (o, context);
        json_decref (context);
        return rc;
    }
    return json_object_set_new (shell->event_context, name, context);
}

/* Tasks
 */

flux_shell_task_t *flux_shell_current_task (flux_shell_t *shell)
{
    if (!shell) {
        errno = EINVAL;
        return NULL;
    }
    return shell->current;
}

/* One object per state of the task, kept until the shell ends: what was
 * unpacked from it stays valid.
 */
static json_t *task_info (flux_shell_task_t *task)
{
    flux_subprocess_t *p = task->proc;
    const char *state = p
        ? flux_subprocess_state_string (flux_subprocess_state (p))
        : task->in_exec ? "Exec" : "Init";
    char key[64];
    json_t *o;

    snprintf (key, sizeof (key), "task%d-%s", task->index, state);
    if ((o = flux_shell_aux_get (task->shell, key)))
        return o;
    if (!(o = json_pack ("{s:i s:i s:s}",
                         "localid", task->index,
                         "rank", task->rank,
                         "state", state)))
        return NULL;
    if (p && flux_subprocess_pid (p) > 0)
        json_object_set_new (o, "pid", json_integer (flux_subprocess_pid (p)));
    if (p && flux_subprocess_state (p) == FLUX_SUBPROCESS_EXITED) {
        int status = flux_subprocess_status (p);
        int sig = WIFSIGNALED (status) ? WTERMSIG (status) : 0;
        json_object_set_new (o, "wait_status", json_integer (status));
        json_object_set_new (o, "signaled", json_integer (sig));
        json_object_set_new (o,
                             "exitcode",
                             json_integer (sig ? 128 + sig
                                               : WEXITSTATUS (status)));
    }
    if (flux_shell_aux_set (task->shell, key, o, (flux_free_f)json_decref) == 0)
        return o;
    json_decref (o);
    return NULL;
}

int flux_shell_task_get_info (flux_shell_task_t *task, char **json_str)
{
    json_t *info = task && json_str ? task_info (task) : NULL;

    if (!task || !json_str)
        errno = EINVAL;
    return info && (*json_str = json_dumps (info, JSON_COMPACT)) ? 0 : -1;
}

// vi: ts=4 sw=4 expandtab

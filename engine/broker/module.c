/* SPDX-License-Identifier: LGPL-3.0-only */
/* module.c - load and unload broker modules.
 *
 * A shared object runs mod_main () in a thread and talks to the router over
 * an interthread channel; a Python module runs in a process (RFC 5, python.c)
 * that connects to a socket made for it alone.  Either gets a welcome message,
 * reports its state with module.status requests, and ends when it has
 * reported "exited" (or its process has ended).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "module.h"

/* The request that loaded the module hears how it went: once it runs, or as it
 * ends before.
 */
static void answer_load (struct module *m, bool failed)
{
    const flux_msg_t *request = m->load_request;

    m->load_request = NULL;
    if (request && failed) {
        errno = m->errnum;
        respond_error (m->ms->b->h, request, m->errtext);
    }
    else if (request)
        respond_ok (m->ms->b->h, request);
    flux_msg_decref (request);
}

/* A module that nobody removed has failed, and the instance goes down with it
 * unless broker.module-nopanic says otherwise.
 */
static void panic (struct broker *b, const char *name)
{
    const char *s = attr_get (b->attrs, "broker.module-nopanic");

    flux_log (b->h, LOG_CRIT, "%s has failed", name);
    if (!s || strcmp (s, "0") == 0)
        b->module_failed (b);
}

/* The end of a module, whatever its cause. */
static void module_exited (struct module *m)
{
    struct broker *b = m->ms->b;
    bool failed = m->errnum != 0;
    bool lost = failed && !m->load_request && !m->unload_requested;
    const flux_msg_t *request;
    char *name = m->name;

    m->name = NULL;
    LIST_REMOVE (m, link);
    flux_log (b->h, LOG_DEBUG, "%s has ended", name);
    if (failed)
        flux_log (b->h, LOG_ERR, "%s: %s", name,
                  *m->errtext ? m->errtext : strerror (m->errnum));
    answer_load (m, failed);
    while ((request = flux_msglist_pop (m->remove_requests))) {
        respond_ok (b->h, request);
        flux_msg_decref (request);
    }
    module_destroy (m);
    if (lost)
        panic (b, name);
    free (name);
}

/* Load */

static const char *suffix_of (const char *path)
{
    const char *dot = strrchr (path, '.');

    return dot && !strchr (dot, '/') ? dot + 1 : "";
}

/* The file of a module, from its path or its name.  Python comes first in
 * FLUX_MODULE_PATH: the shared object of an older version may still lie there.
 */
static char *find_file (const char *target)
{
    static const char *const suffixes[] = { "py", "so" };
    char *path;

    if (strchr (target, '/'))
        return strdup (target);
    for (int i = 0; i < 2; i++) {
        const char *dirs = getenv ("FLUX_MODULE_PATH");

        for (int len; dirs && *dirs; dirs += len + (dirs[len] == ':')) {
            len = strcspn (dirs, ":");
            if (asprintf (&path, "%.*s/%s.%s", len, dirs, target, suffixes[i])
                < 0)
                return NULL;
            if (access (path, R_OK) == 0)
                return path;
            free (path);
        }
    }
    errno = ENOENT;
    return NULL;
}

/* The process that waits for this module to be loaded, or a new one, and what
 * it is to be told.
 */
static struct module *prepare_process (struct modules *ms, const char *path,
                                       const char *name, json_t *args,
                                       flux_error_t *error)
{
    struct module *m = ms->prestarted;

    if (m && m->is_process && strcmp (m->path, path) == 0)
        ms->prestarted = NULL;
    else if (!(m = module_create_process (ms, path, error)))
        return NULL;
    if (!(m->welcome = module_welcome (ms, name, peer_id (m->peer), args))) {
        errprintf (error, "cannot make its first message");
        module_destroy (m);
        return NULL;
    }
    return m;
}

void modules_prestart (struct modules *ms, const char *name)
{
    char *path = find_file (name);
    flux_error_t error;

    /* If this fails, so will module.load, which says why. */
    (void)module_start_python (ms, &error);
    if (path && !ms->prestarted && strcmp (suffix_of (path), "py") == 0)
        ms->prestarted = module_create_process (ms, path, &error);
    free (path);
}

/* Run what has been prepared under its name. */
static int start (struct module *m, const char *name, flux_error_t *error)
{
    struct broker *b = m->ms->b;

    if (!(m->name = strdup (name))
        || service_add (b->router, name, m->peer) < 0)
        return errprintf (error, "cannot offer the service %s: %s", name,
                          strerror (errno));
    m->last_seen = flux_reactor_now (b->reactor);
    if (m->mod_main)
        return module_start_thread (m, error);
    if (m->conn && client_send (m->conn, &m->welcome) < 0)
        return errprintf (error, "cannot send its first message: %s",
                          strerror (errno));
    return 0;
}

static struct module *load (struct modules *ms, const char *target,
                            const char *name, json_t *args,
                            flux_error_t *error)
{
    char *path = find_file (target);
    const char *suffix = path ? suffix_of (path) : "";
    struct module *m = NULL;
    char *own_name = NULL;
    const char *file;

    if (!path) {
        errprintf (error, "module not found in search path");
        return NULL;
    }
    file = strrchr (path, '/') + 1;
    if (!name)
        name = own_name = strndup (file, strcspn (file, "."));
    if (!name)
        errprintf (error, "out of memory");
    else if (strcmp (suffix, "py") == 0)
        m = prepare_process (ms, path, name, args, error);
    else if (strcmp (suffix, "so") == 0)
        m = module_create_thread (ms, path, name, args, error);
    else {
        errno = ENOENT;
        errprintf (error, "not the path of a .so or .py");
    }
    if (m && start (m, name, error) < 0) {
        module_destroy (m);
        m = NULL;
    }
    if (m) {
        LIST_INSERT_HEAD (&ms->list, m, link);
        flux_log (ms->b->h, LOG_DEBUG, "loaded %s", name);
    }
    ERRNO_SAFE (free (path));
    ERRNO_SAFE (free (own_name));
    return m;
}

/* Requests */

static void load_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                     void *arg)
{
    const char *target, *name = NULL;
    flux_error_t error = { .text = "" };
    struct module *m;
    json_t *args;

    if (flux_request_unpack (msg, NULL, "{s:s s:o s?s}", "path", &target,
                             "args", &args, "name", &name) == 0
        && (m = load (arg, target, name, args, &error)))
        m->load_request = flux_msg_incref (msg);
    else
        respond_error (h, msg, error.text);
}

static void remove_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                       void *arg)
{
    struct modules *ms = arg;
    struct module *m = NULL;
    flux_future_t *f;
    int force = 0;
    const char *name;
    char topic[128];

    if (flux_request_unpack (msg, NULL, "{s?b s:s}", "cancel", &force,
                             "name", &name) < 0)
        goto error;
    LIST_FOREACH (m, &ms->list, link) {
        if (strcmp (name, m->name) == 0 || strcmp (name, m->path) == 0)
            break;
    }
    errno = ENOENT;
    if (!m || flux_msglist_append (m->remove_requests, msg) < 0)
        goto error;
    m->unload_requested = true;
    if (force && m->is_process) {
        python_kill (ms->python, peer_id (m->peer));
        return;
    }
    snprintf (topic, sizeof (topic), "%s.shutdown", m->name);
    if (!(f = flux_rpc (h, topic, NULL, FLUX_NODEID_ANY,
                        FLUX_RPC_NORESPONSE)))
        flux_log_error (h, "cannot send %s", topic);
    flux_future_destroy (f);
    return;
error:
    respond_error (h, msg, NULL);
}

static void list_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                     void *arg)
{
    struct modules *ms = arg;
    double now = flux_reactor_now (ms->b->reactor);
    json_t *mods = json_array ();
    struct module *m;

    LIST_FOREACH (m, &ms->list, link)
        json_array_append_new (mods, json_pack (
            "{s:s s:s s:o s:i s:i}",
            "path", m->path,
            "name", m->name,
            "services", service_list (ms->b->router, m->peer),
            "status", m->status,
            "idle", (int)(now - m->last_seen)));
    respond_pack (h, msg, "{s:o}", "mods", mods);
}

/* A module tells of its own state, which only goes on.  The end of a process
 * counts once the process is gone.
 */
static void status_cb (flux_t *h, flux_msg_handler_t *mh, const flux_msg_t *msg,
                       void *arg)
{
    struct modules *ms = arg;
    const char *sender = flux_msg_route_first (msg);
    struct module *m;
    int errnum = 0;
    int status;

    if (flux_request_unpack (msg, NULL, "{s?i s:i}", "errnum", &errnum,
                             "status", &status) < 0) {
        flux_log_error (h, "module.status is not valid");
        return;
    }
    LIST_FOREACH (m, &ms->list, link) {
        if (sender && strcmp (sender, peer_id (m->peer)) == 0)
            break;
    }
    if (m && status == FINALIZING)
        peer_mute (m->peer);
    respond_ok (h, msg);
    if (!m || status > EXITED || status <= m->status)
        return;
    m->status = status;
    if (status == RUNNING)
        answer_load (m, false);
    if (status == EXITED) {
        m->errnum = errnum;
        if (!m->is_process)
            module_exited (m);
    }
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "list", list_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "load", load_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "remove", remove_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "status", status_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

/* Life */

json_t *modules_names (struct broker *b)
{
    json_t *names = json_array ();
    struct module *m;

    LIST_FOREACH (m, &b->modules->list, link)
        json_array_append_new (names, json_string (m->name));
    return names;
}

struct modules *modules_create (struct broker *b)
{
    struct modules *ms = calloc (1, sizeof (*ms));

    if (ms) {
        ms->b = b;
        ms->exited = module_exited;
        if (flux_msg_handler_addvec_ex (b->h, "module", htab, ms,
                                        &ms->handlers) == 0) {
            config_tell (b->config, modules_names);
            return ms;
        }
    }
    modules_destroy (ms);
    return NULL;
}

/* Modules that are still loaded did not end when asked to.  A thread cannot be
 * stopped by force: leave it, the process is about to end.
 */
void modules_destroy (struct modules *ms)
{
    struct module *m;

    if (!ms)
        return;
    ERRNO_SAFE_BLOCK;
    module_destroy (ms->prestarted);
    while ((m = LIST_FIRST (&ms->list))) {
        LIST_REMOVE (m, link);
        if (m->thread_started)
            fprintf (stderr, "flux: module %s did not stop\n", m->name);
        else
            module_destroy (m);
    }
    python_destroy (ms->python);
    flux_msg_handler_delvec (ms->handlers);
    free (ms);
}

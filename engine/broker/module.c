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

static void answer_load (struct module *m)
{
    flux_t *h = m->ms->b->h;

    if (!m->load_request)
        return;
    if (m->status == EXITED && m->errnum != 0) {
        errno = m->errnum;
        respond_error (h, m->load_request, m->errtext);
    }
    else
        respond_ok (h, m->load_request);
    flux_msg_decref (m->load_request);
    m->load_request = NULL;
}

/* The end of a module, whatever its cause.
 */
static void module_exited (struct module *m)
{
    struct modules *ms = m->ms;
    flux_t *h = ms->b->h;
    struct module **p = &ms->list;
    const flux_msg_t *msg;
    bool failed = m->errnum != 0;
    bool unexpected = failed && !m->unload_requested && !m->load_request;
    char name[64];

    snprintf (name, sizeof (name), "%s", m->name);
    while (*p && *p != m)
        p = &(*p)->next;
    if (*p)
        *p = m->next;
    flux_log (h, LOG_DEBUG, "module %s exited", name);
    if (failed)
        flux_log (h,
                  LOG_ERR,
                  "%s: %s",
                  name,
                  m->errtext[0] ? m->errtext : strerror (m->errnum));
    answer_load (m);
    while ((msg = flux_msglist_pop (m->remove_requests))) {
        respond_ok (h, msg);
        flux_msg_decref (msg);
    }
    module_destroy (m);
    if (unexpected) {
        const char *s = attr_get (ms->b->attrs, "broker.module-nopanic");

        flux_log (h, LOG_CRIT, "%s module runtime failure", name);
        if (!s || !strcmp (s, "0"))
            ms->b->module_failed (ms->b);
    }
}

/* Find NAME.py, or else NAME.so, in FLUX_MODULE_PATH: the shared object of an
 * older version may still lie there.
 */
static char *find_module (const char *name)
{
    static const char *suffixes[] = { "py", "so" };
    const char *searchpath = getenv ("FLUX_MODULE_PATH");

    for (size_t i = 0; i < 2 && searchpath; i++) {
        const char *dir = searchpath;
        while (*dir) {
            int len = strcspn (dir, ":");
            char *path;
            if (asprintf (&path, "%.*s/%s.%s", len, dir, name, suffixes[i]) < 0)
                return NULL;
            if (access (path, R_OK) == 0)
                return path;
            free (path);
            dir += len + (dir[len] == ':');
        }
    }
    errno = ENOENT;
    return NULL;
}

static bool has_suffix (const char *path, const char *suffix)
{
    size_t n = strlen (path);
    size_t m = strlen (suffix);

    return n > m && !strcmp (path + n - m, suffix);
}

static struct module *lookup (struct modules *ms, const char *name)
{
    for (struct module *m = ms->list; m != NULL; m = m->next)
        if (!strcmp (m->name, name) || !strcmp (m->path, name))
            return m;
    errno = ENOENT;
    return NULL;
}

static struct module *take_prestarted (struct modules *ms, const char *path)
{
    struct module *m = ms->prestarted;

    if (!m || strcmp (m->path, path) != 0 || !m->is_process)
        return NULL;
    ms->prestarted = NULL;
    return m;
}

void modules_prestart (struct modules *ms, const char *name)
{
    char *path = strchr (name, '/') ? strdup (name) : find_module (name);
    flux_error_t error;

    /* If this fails, so will module.load, which says why.
     */
    (void)module_start_python (ms, &error);
    if (path && has_suffix (path, ".py") && !ms->prestarted)
        ms->prestarted = module_create_process (ms, path, &error);
    free (path);
}

static struct module *load (struct modules *ms,
                            const char *target,
                            const char *name,
                            json_t *args,
                            flux_error_t *error)
{
    struct module *m = NULL;
    char *path = NULL;
    char *mod_name = NULL;
    const char *base;

    if (strchr (target, '/'))
        path = strdup (target);
    else if (!(path = find_module (target))) {
        errprintf (error, "module not found in search path");
        return NULL;
    }
    base = path ? strrchr (path, '/') + 1 : "";
    mod_name = name ? strdup (name) : strndup (base, strcspn (base, "."));
    if (!path || !mod_name) {
        errprintf (error, "out of memory");
        goto error;
    }
    if (has_suffix (path, ".py")) {
        if (!(m = take_prestarted (ms, path))
            && !(m = module_create_process (ms, path, error)))
            goto error;
        if (!(m->welcome = module_welcome (ms,
                                           mod_name,
                                           peer_id (m->peer),
                                           args))) {
            errprintf (error, "error encoding welcome message");
            goto error;
        }
    }
    else if (strstr (base, ".so")) {
        if (!(m = module_create_thread (ms, path, mod_name, args, error)))
            goto error;
    }
    else {
        errno = ENOENT;
        errprintf (error, "not the path of a .so or .py");
        goto error;
    }
    if (service_add (ms->b->router, mod_name, m->peer) < 0) {
        errprintf (error,
                   "error registering %s service: %s",
                   mod_name,
                   strerror (errno));
        goto error;
    }
    m->last_seen = flux_reactor_now (ms->b->reactor);
    m->name = mod_name;
    mod_name = NULL;
    if (m->mod_main && module_start_thread (m, error) < 0)
        goto error;
    if (m->conn && client_send (m->conn, &m->welcome) < 0) {
        errprintf (error, "error sending welcome: %s", strerror (errno));
        goto error;
    }
    m->next = ms->list;
    ms->list = m;
    free (path);
    flux_log (ms->b->h, LOG_DEBUG, "insmod %s", m->name);
    return m;
error:
    module_destroy (m);
    free (path);
    free (mod_name);
    return NULL;
}

/* Requests
 */

static void load_cb (flux_t *h,
                     flux_msg_handler_t *mh,
                     const flux_msg_t *msg,
                     void *arg)
{
    struct modules *ms = arg;
    const char *target;
    const char *name = NULL;
    json_t *args = NULL;
    flux_error_t error;
    struct module *m;

    if (flux_request_unpack (msg,
                             NULL,
                             "{s:s s?s s:o}",
                             "path", &target,
                             "name", &name,
                             "args", &args) < 0) {
        errprintf (&error, "malformed module.load request");
        goto error;
    }
    if (!(m = load (ms, target, name, args, &error)))
        goto error;
    m->load_request = flux_msg_incref (msg);
    return;
error:
    respond_error (h, msg, error.text);
}

static void remove_cb (flux_t *h,
                       flux_msg_handler_t *mh,
                       const flux_msg_t *msg,
                       void *arg)
{
    struct modules *ms = arg;
    const char *name;
    int cancel = 0;
    struct module *m;
    char topic[128];
    flux_future_t *f;

    if (flux_request_unpack (msg,
                             NULL,
                             "{s:s s?b}",
                             "name", &name,
                             "cancel", &cancel) < 0
        || !(m = lookup (ms, name))
        || flux_msglist_append (m->remove_requests, msg) < 0)
        goto error;
    m->unload_requested = true;
    if (cancel && m->is_process) {
        python_kill (ms->python, peer_id (m->peer));
        return;
    }
    snprintf (topic, sizeof (topic), "%s.shutdown", m->name);
    if (!(f = flux_rpc (h, topic, NULL, FLUX_NODEID_ANY, FLUX_RPC_NORESPONSE)))
        flux_log_error (h, "error sending %s", topic);
    flux_future_destroy (f);
    flux_log (h, LOG_DEBUG, "rmmod %s", m->name);
    return;
error:
    respond_error (h, msg, NULL);
}

static void list_cb (flux_t *h,
                     flux_msg_handler_t *mh,
                     const flux_msg_t *msg,
                     void *arg)
{
    struct modules *ms = arg;
    double now = flux_reactor_now (ms->b->reactor);
    json_t *mods = json_array ();

    for (struct module *m = ms->list; m != NULL; m = m->next) {
        json_t *o = json_pack (
            "{s:s s:s s:i s:i s:o}",
            "name", m->name,
            "path", m->path,
            "idle", (int)(now - m->last_seen),
            "status", m->status,
            "services", service_list (ms->b->router, m->peer));
        json_array_append_new (mods, o);
    }
    respond_pack (h, msg, "{s:o}", "mods", mods);
}

static void status_cb (flux_t *h,
                       flux_msg_handler_t *mh,
                       const flux_msg_t *msg,
                       void *arg)
{
    struct modules *ms = arg;
    const char *sender = flux_msg_route_first (msg);
    struct module *m = ms->list;
    int status;
    int errnum = 0;

    if (flux_request_unpack (msg,
                             NULL,
                             "{s:i s?i}",
                             "status", &status,
                             "errnum", &errnum) < 0) {
        flux_log_error (h, "malformed module.status request");
        return;
    }
    while (m && (!sender || strcmp (peer_id (m->peer), sender) != 0))
        m = m->next;
    if (m && status == FINALIZING)
        peer_mute (m->peer);
    respond_ok (h, msg);
    if (!m || status <= m->status || status > EXITED)
        return;
    m->status = status;
    if (status == RUNNING)
        answer_load (m);
    else if (status == EXITED) {
        m->errnum = errnum;
        if (!m->is_process)
            module_exited (m);  // otherwise once the process has ended
    }
}

static const struct flux_msg_handler_spec htab[] = {
    { FLUX_MSGTYPE_REQUEST, "module.load", load_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "module.remove", remove_cb, 0 },
    { FLUX_MSGTYPE_REQUEST, "module.list", list_cb, FLUX_ROLE_USER },
    { FLUX_MSGTYPE_REQUEST, "module.status", status_cb, 0 },
    FLUX_MSGHANDLER_TABLE_END,
};

json_t *modules_names (struct broker *b)
{
    struct modules *ms = b->modules;
    json_t *a = json_array ();

    for (struct module *m = ms->list; m != NULL; m = m->next)
        json_array_append_new (a, json_string (m->name));
    return a;
}

struct modules *modules_create (struct broker *b)
{
    struct modules *ms;

    if (!(ms = calloc (1, sizeof (*ms))))
        return NULL;
    ms->b = b;
    ms->exited = module_exited;
    config_tell (b->config, modules_names);
    if (flux_msg_handler_addvec (b->h, htab, ms, &ms->handlers) < 0) {
        modules_destroy (ms);
        return NULL;
    }
    return ms;
}

/* Modules that are still loaded did not end when asked to.  A thread cannot be
 * stopped by force: leave it, the process is about to end.
 */
void modules_destroy (struct modules *ms)
{
    if (ms) {
        ERRNO_SAFE_BLOCK;
        module_destroy (ms->prestarted);
        while (ms->list) {
            struct module *m = ms->list;
            ms->list = m->next;
            if (m->thread_started)
                fprintf (stderr, "flux: module %s did not stop\n", m->name);
            else
                module_destroy (m);
        }
        python_destroy (ms->python);
        flux_msg_handler_delvec (ms->handlers);
        free (ms);
    }
}

/* SPDX-License-Identifier: LGPL-3.0-only */
/* module_run.c - how a module runs: a shared object in a thread, Python in a
 * process (RFC 5), either with a channel to the router.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "libutil/errno_safe.h"
#include "module.h"

/* The thread of a module
 */

static void *module_thread (void *arg)
{
    struct module *m = arg;
    flux_t *h;
    flux_error_t error;
    char *args = NULL;
    char **argv = NULL;
    int argc = 0;
    int errnum = 0;
    char *saveptr = NULL;

    if (!(h = flux_open_ex (m->uri, 0, &error))) {
        fprintf (stderr, "module: flux_open: %s\n", error.text);
        return NULL;
    }
    if (flux_module_initialize (h, &args, &error) < 0
        || flux_module_register_handlers (h, &error) < 0) {
        flux_log (h, LOG_ERR, "%s", error.text);
        errnum = errno ? errno : EINVAL;
        goto done;
    }
    char comm[16];
    const char *name = flux_aux_get (h, "flux::name");
    snprintf (comm, sizeof (comm), "%.15s", name ? name : "module");
    (void)pthread_setname_np (pthread_self (), comm);

    if (!(argv = calloc ((args ? strlen (args) : 0) / 2 + 2, sizeof (*argv))))
        errnum = ENOMEM;
    else {
        for (char *s = args ? strtok_r (args, " ", &saveptr) : NULL;
             s != NULL;
             s = strtok_r (NULL, " ", &saveptr))
            argv[argc++] = s;
        errno = 0;
        if (m->mod_main (h, argc, argv) < 0) {
            errnum = errno ? errno : ECONNRESET;
            flux_log (h, LOG_CRIT, "module exiting abnormally");
        }
    }
done:
    if (flux_module_finalize (h, errnum, &error) < 0)
        flux_log (h, LOG_ERR, "error finalizing module: %s", error.text);
    free (argv);
    free (args);
    flux_close (h);
    return NULL;
}

/* The router's side
 */

static void thread_cb (flux_reactor_t *r,
                       flux_watcher_t *w,
                       int revents,
                       void *arg)
{
    struct module *m = arg;
    flux_msg_t *msg;
    int batch = 64;             // be fair to the others

    m->last_seen = flux_reactor_now (r);
    while (batch-- > 0
           && (msg = flux_recv (m->h, FLUX_MATCH_ANY, FLUX_O_NONBLOCK)))
        peer_recv (m->peer, msg);
}

static int module_send (void *arg, flux_msg_t **msg)
{
    struct module *m = arg;

    if (m->h)
        return flux_send_new (m->h, msg, 0);
    if (m->conn)
        return client_send (m->conn, msg);
    errno = EHOSTUNREACH;
    return -1;
}

static void process_recv (struct client *conn, flux_msg_t *msg, void *arg)
{
    struct module *m = arg;

    m->last_seen = flux_reactor_now (m->ms->b->reactor);
    peer_recv (m->peer, msg);
}

static void process_lost (struct client *conn, void *arg)
{
    struct module *m = arg;

    client_destroy (m->conn);
    m->conn = NULL;
}

/* The process has connected.
 */
static void process_connected (struct client *conn, void *arg)
{
    struct module *m = arg;

    if (m->conn) {
        client_destroy (conn);
        return;
    }
    m->conn = conn;
    client_set_handlers (conn, process_recv, process_lost, m);
    if (m->welcome && client_send (conn, &m->welcome) < 0)
        flux_log_error (m->ms->b->h, "error sending welcome to %s", m->name);
}

static void process_ended (struct module *m, int status)
{
    m->is_process = false;
    if (m->conn)
        client_drain (m->conn);         // read what it sent before it ended
    if (m->status == FINALIZING && WIFEXITED (status)
        && WEXITSTATUS (status) == 0)
        return;                         // its last message is on the way
    if (m->status != EXITED) {
        m->status = EXITED;
        m->errnum = ECONNRESET;
        if (WIFSIGNALED (status))
            snprintf (m->errtext,
                      sizeof (m->errtext),
                      "module process was killed: %s",
                      strsignal (WTERMSIG (status)));
        else
            snprintf (m->errtext,
                      sizeof (m->errtext),
                      "module process ended with exit code %d",
                      WEXITSTATUS (status));
    }
    if (m->name)
        m->ms->exited (m);
}

static struct module *find_process (struct modules *ms, const char *id)
{
    struct module *m = ms->prestarted;

    if (m && m->is_process && (!id || !strcmp (peer_id (m->peer), id)))
        return m;
    LIST_FOREACH (m, &ms->list, link)
        if (m->is_process && (!id || !strcmp (peer_id (m->peer), id)))
            return m;
    return NULL;
}

static void python_ended (void *arg, const char *id, int status)
{
    struct modules *ms = arg;
    struct module *m;

    if (id) {
        if ((m = find_process (ms, id)))
            process_ended (m, status);
        return;
    }
    python_destroy (ms->python);
    ms->python = NULL;
    while ((m = find_process (ms, NULL)))
        process_ended (m, SIGKILL);
}

int module_start_python (struct modules *ms, flux_error_t *error)
{
    if (!ms->python)
        ms->python = python_create (ms->b->reactor, python_ended, ms, error);
    return ms->python ? 0 : -1;
}

void module_destroy (struct module *m)
{
    if (!m)
        return;
    ERRNO_SAFE_BLOCK;
    if (m->thread_started)
        (void)pthread_join (m->thread, NULL);
    if (m->is_process && m->ms->python)
        python_kill (m->ms->python, peer_id (m->peer));
    peer_destroy (m->peer);
    flux_watcher_destroy (m->w);
    flux_close (m->h);
    client_destroy (m->conn);
    client_server_destroy (m->server);
    flux_msg_decref (m->welcome);
    flux_msg_decref (m->load_request);
    flux_msglist_destroy (m->remove_requests);
#ifndef __SANITIZE_ADDRESS__    // keeps the symbols of leak reports
    if (m->dso)
        dlclose (m->dso);
#endif
    free (m->name);
    free (m->path);
    free (m);
}

flux_msg_t *module_welcome (struct modules *ms,
                            const char *name,
                            const char *id,
                            json_t *args)
{
    json_t *attrs = attrs_cacheable (ms->b->attrs);
    flux_msg_t *msg = flux_request_encode ("welcome", NULL);

    if (!msg
        || flux_msg_pack (msg,
                          "{s:O s:O s:O s:s s:s}",
                          "args", args,
                          "attrs", attrs,
                          "conf", config_get (ms->b->config),
                          "name", name,
                          "uuid", id) < 0) {
        flux_msg_decref (msg);
        msg = NULL;
    }
    json_decref (attrs);
    return msg;
}

static struct module *module_create (struct modules *ms,
                                     const char *path,
                                     bool is_process)
{
    struct flux_msg_cred cred = {
        .userid = ms->b->owner,
        .rolemask = FLUX_ROLE_OWNER | FLUX_ROLE_LOCAL,
    };
    struct module *m;

    if (!(m = calloc (1, sizeof (*m))))
        return NULL;
    m->ms = ms;
    if (!(m->path = strdup (path))
        || !(m->remove_requests = flux_msglist_create ())
        || !(m->peer = peer_create (ms->b->router,
                                    cred,
                                    is_process,
                                    module_send,
                                    m))) {
        module_destroy (m);
        return NULL;
    }
    return m;
}

struct module *module_create_thread (struct modules *ms,
                                     const char *path,
                                     const char *name,
                                     json_t *args,
                                     flux_error_t *error)
{
    struct module *m;
    flux_msg_t *msg = NULL;

    if (!(m = module_create (ms, path, false))) {
        errprintf (error, "out of memory");
        return NULL;
    }
    if (!(m->dso = dlopen (path, RTLD_NOW | RTLD_GLOBAL))) {
        errno = ENOENT;
        errprintf (error, "%s", dlerror ());
        goto error;
    }
    if (!(m->mod_main = dlsym (m->dso, "mod_main"))) {
        errno = EINVAL;
        errprintf (error, "no function mod_main in it");
        goto error;
    }
    snprintf (m->uri, sizeof (m->uri), "interthread://%s", peer_id (m->peer));
    if (!(m->h = flux_open (m->uri, 0))
        || flux_set_reactor (m->h, ms->b->reactor) < 0
        || !(m->w = flux_handle_watcher_create (ms->b->reactor,
                                                m->h,
                                                FLUX_POLLIN,
                                                thread_cb,
                                                m))
        || !(msg = module_welcome (ms, name, peer_id (m->peer), args))
        || flux_send_new (m->h, &msg, 0) < 0) {
        errprintf (error, "error creating module channel: %s", strerror (errno));
        goto error;
    }
    flux_watcher_start (m->w);
    return m;
error:
    flux_msg_decref (msg);
    module_destroy (m);
    return NULL;
}

/* The thread blocks all signals: the broker's own thread handles them.
 */
int module_start_thread (struct module *m, flux_error_t *error)
{
    sigset_t all, old;
    int e;

    sigfillset (&all);
    (void)pthread_sigmask (SIG_SETMASK, &all, &old);
    e = pthread_create (&m->thread, NULL, module_thread, m);
    (void)pthread_sigmask (SIG_SETMASK, &old, NULL);
    if (e != 0) {
        errno = e;
        return errprintf (error, "error starting thread: %s", strerror (e));
    }
    m->thread_started = true;
    return 0;
}

struct module *module_create_process (struct modules *ms,
                                      const char *path,
                                      flux_error_t *error)
{
    char sock[256], uri[300];
    struct module *m;

    if (module_start_python (ms, error) < 0)
        return NULL;
    if (!(m = module_create (ms, path, true))) {
        errprintf (error, "out of memory");
        return NULL;
    }
    snprintf (sock,
              sizeof (sock),
              "%s/module-%.8s",
              ms->b->rundir,
              peer_id (m->peer));
    snprintf (uri, sizeof (uri), "local://%s", sock);
    if (!(m->server = client_server_create_private (ms->b,
                                                    sock,
                                                    process_connected,
                                                    m))) {
        errprintf (error, "%s: %s", sock, strerror (errno));
        goto error;
    }
    if (python_run (ms->python, peer_id (m->peer), uri, path) < 0) {
        errprintf (error, "error asking for a process: %s", strerror (errno));
        goto error;
    }
    m->is_process = true;
    return m;
error:
    module_destroy (m);
    return NULL;
}

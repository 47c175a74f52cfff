/* SPDX-License-Identifier: LGPL-3.0-only */
/* module.h - what loading and unloading modules (module.c) and running them
 * (module_run.c) share.
 */
#ifndef SOLO_BROKER_MODULE_H
#define SOLO_BROKER_MODULE_H

#include <pthread.h>
#include <sys/queue.h>

#include "broker.h"
#include "client.h"

typedef int (*mod_main_f)(flux_t *h, int argc, char *argv[]);

enum { INIT, RUNNING, FINALIZING, EXITED };     // RFC 5

struct module {
    LIST_ENTRY (module) link;
    struct modules *ms;
    char *name;
    char *path;
    struct peer *peer;
    int status;
    int errnum;
    char errtext[128];
    bool unload_requested;
    double last_seen;
    const flux_msg_t *load_request;
    struct flux_msglist *remove_requests;

    char uri[80];               // read by the thread
    mod_main_f mod_main;
    void *dso;
    pthread_t thread;
    bool thread_started;
    flux_t *h;                  // our end of the channel
    flux_watcher_t *w;

    bool is_process;            // Python, and has not ended
    struct client_server *server;
    struct client *conn;
    flux_msg_t *welcome;        // until the process connects
};

struct modules {
    struct broker *b;
    void (*exited) (struct module *m);  // whatever the cause
    LIST_HEAD (, module) list;  // the last loaded first
    struct module *prestarted;
    struct python *python;      // from the first Python module on
    flux_msg_handler_t **handlers;
};

/* python.c
 */
struct python;

/* The process of a module has ended, with the status of waitpid(2), or without
 * an id the interpreter and all.
 */
typedef void (*python_ended_f)(void *arg, const char *id, int status);

struct python *python_create (flux_reactor_t *r,
                              python_ended_f ended,
                              void *arg,
                              flux_error_t *error);
/* Kill the interpreter with all of its modules.
 */
void python_destroy (struct python *py);
int python_run (struct python *py,
                const char *id,
                const char *uri,
                const char *path);
void python_kill (struct python *py, const char *id);

/* module_run.c
 */

/* A shared object, with its channel but not yet running.
 */
struct module *module_create_thread (struct modules *ms,
                                     const char *path,
                                     const char *name,
                                     json_t *args,
                                     flux_error_t *error);
int module_start_thread (struct module *m, flux_error_t *error);
/* Start the interpreter, if there is none.
 */
int module_start_python (struct modules *ms, flux_error_t *error);
/* A Python module: its process starts, and waits for the welcome.
 */
struct module *module_create_process (struct modules *ms,
                                      const char *path,
                                      flux_error_t *error);
/* The first message to a module: its name, arguments, configuration.
 */
flux_msg_t *module_welcome (struct modules *ms,
                            const char *name,
                            const char *id,
                            json_t *args);
/* Ends what runs: waits for the thread, kills the process.
 */
void module_destroy (struct module *m);

#endif // !SOLO_BROKER_MODULE_H

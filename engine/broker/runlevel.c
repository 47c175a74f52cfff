/* SPDX-License-Identifier: LGPL-3.0-only */
/* runlevel.c - the life of an instance, one step after the other.
 *
 * Load the modules, run the scripts of rc1.d and the initial program; when that
 * has ended, or a signal asks for it, let the running jobs end, run the scripts
 * of rc3.d, unload the modules in reverse order and stop.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "broker.h"
#include "common/spawn.h"

enum { CLEANUP_TIMEOUT = 60, UNLOAD_TIMEOUT = 20 };    // seconds

enum state { LOAD, RUN, CLEANUP, UNLOAD, DONE };

struct runlevel {
    struct broker *b;
    enum state state;
    const struct runlevel_opts *opts;
    json_t *modules;            // module.load requests
    size_t next;
    flux_future_t *f;           // the step under way
    flux_watcher_t *timer;
    bool stop;                  // has been asked for
    pid_t pid;                  // of the program that runs, or -1
    flux_watcher_t *process_w;
    void (*ended)(struct runlevel *rl, int exit_code);
    int exit_code;
};

static void load_next (struct runlevel *rl);
static void cleanup_next (struct runlevel *rl);
static void start_unload (struct runlevel *rl);
static void unload_next (struct runlevel *rl);

/* The requests that end the running jobs, in order (broker state "cleanup").
 */
static const struct cleanup_step {
    const char *topic;
    const char *payload;
    bool wait;
} cleanup_steps[] = {
    { "job-manager.queue-start",
      "{\"start\":false,\"all\":true,\"nocheckpoint\":true}",
      true },
    { "resource.acquire-mute", "{}", true },
    { "job-manager.raiseall", NULL, true },
    { "job-manager.idle", "{}", true },
};
enum { CLEANUP_STEPS = sizeof (cleanup_steps) / sizeof (cleanup_steps[0]) };

static void set_state (struct runlevel *rl, enum state state)
{
    rl->state = state;
    rl->next = 0;
}

static void drop_future (struct runlevel *rl)
{
    flux_future_destroy (rl->f);
    rl->f = NULL;
}

/* Programs
 */

static void program_ended (flux_reactor_t *r,
                           flux_watcher_t *w,
                           int revents,
                           void *arg)
{
    struct runlevel *rl = arg;
    int status;

    if (waitpid (rl->pid, &status, WNOHANG) != rl->pid)
        return;
    process_watcher_destroy (rl->process_w);
    rl->process_w = NULL;
    rl->pid = -1;
    rl->ended (rl, WIFSIGNALED (status) ? 128 + WTERMSIG (status)
                                        : WEXITSTATUS (status));
}

/* Call ended() with the exit code, at once if the program cannot be run.
 */
static void run (struct runlevel *rl, char *const command[],
                 void (*ended)(struct runlevel *rl, int exit_code))
{
    struct broker *b = rl->b;
    char uri[300];
    char *env[] = { uri, NULL };
    flux_error_t error;

    rl->ended = ended;
    snprintf (uri, sizeof (uri), "FLUX_URI=%s",
              attr_get (b->attrs, "local-uri"));
    if ((rl->pid = spawn_program (command, env, -1, -1, &error)) < 0
        || !(rl->process_w = process_watcher_create (b->reactor,
                                                     rl->pid,
                                                     program_ended,
                                                     rl))) {
        fprintf (stderr, "flux start: %s\n", error.text);
        ended (rl, errno == ENOENT ? 127 : 126);
    }
}

/* The scripts of rc1.d or rc3.d in the directories of FLUX_RC_EXTRA.
 */
static void run_rc (struct runlevel *rl, char *level,
                    void (*ended)(struct runlevel *rl, int exit_code))
{
    static char script[] =
        "rc=0; IFS=:\n"
        "for dir in $FLUX_RC_EXTRA; do\n"
        "    for file in \"$dir/rc$1.d\"/*; do\n"
        "        test -f \"$file\" && test -x \"$file\" || continue\n"
        "        \"$file\" && continue\n"
        "        echo \"flux start: $file failed with exit code $?\" >&2\n"
        "        rc=1\n"
        "    done\n"
        "done\n"
        "exit $rc\n";
    char *command[] = { "/bin/sh", "-c", script, "rc", level, NULL };

    if (getenv ("FLUX_RC_EXTRA"))
        run (rl, command, ended);
    else
        ended (rl, 0);
}

static void start_program (struct runlevel *rl, int rc1_exit_code)
{
    const char *shell = getenv ("SHELL");
    char **command = rl->opts->command;
    char *by_shell[] = { NULL, NULL, NULL, NULL };

    if (rc1_exit_code != 0 || rl->stop) {
        runlevel_shutdown (rl, rc1_exit_code);
        return;
    }
    set_state (rl, RUN);
    if (!shell || !*shell)
        shell = "/bin/bash";
    by_shell[0] = (char *)shell;
    if (!command)
        command = by_shell;
    else if (!command[1]) {
        by_shell[1] = "-c";
        by_shell[2] = command[0];
        command = by_shell;
    }
    run (rl, command, runlevel_shutdown);
}

/* Load modules
 */

static void loaded (flux_future_t *f, void *arg)
{
    struct runlevel *rl = arg;
    json_t *request = json_array_get (rl->modules, rl->next - 1);
    const char *name = json_string_value (json_object_get (request, "path"));

    if (flux_future_get (f, NULL) < 0) {
        fprintf (stderr,
                 "flux start: error loading %s: %s\n",
                 name,
                 future_strerror (f, errno));
        drop_future (rl);
        runlevel_shutdown (rl, 1);
        return;
    }
    drop_future (rl);
    load_next (rl);
}

static void load_next (struct runlevel *rl)
{
    json_t *request;

    if (rl->state != LOAD)
        return;
    if (!(request = json_array_get (rl->modules, rl->next))) {
        run_rc (rl, "1", start_program);
        return;
    }
    rl->next++;
    if (!(rl->f = flux_rpc_pack (rl->b->h,
                                 "module.load",
                                 FLUX_NODEID_ANY,
                                 0,
                                 "O",
                                 request))
        || flux_future_then (rl->f, -1, loaded, rl) < 0)
        runlevel_shutdown (rl, 1);
}

/* Clean up
 */

static void cleanup_done (flux_future_t *f, void *arg)
{
    struct runlevel *rl = arg;

    if (flux_future_get (f, NULL) < 0 && errno != ENOSYS)
        flux_log (rl->b->h,
                  LOG_ERR,
                  "%s: %s",
                  cleanup_steps[rl->next - 1].topic,
                  future_strerror (f, errno));
    drop_future (rl);
    cleanup_next (rl);
}

static void timeout_cb (flux_reactor_t *r,
                        flux_watcher_t *w,
                        int revents,
                        void *arg)
{
    struct runlevel *rl = arg;

    if (rl->state == CLEANUP) {
        fprintf (stderr, "flux start: giving up on jobs that do not end\n");
        start_unload (rl);
    }
    else {
        fprintf (stderr, "flux start: giving up on a module\n");
        flux_reactor_stop (r);
    }
}

static void set_timeout (struct runlevel *rl, double seconds)
{
    flux_watcher_destroy (rl->timer);
    if ((rl->timer = flux_timer_watcher_create (rl->b->reactor,
                                                seconds,
                                                0.,
                                                timeout_cb,
                                                rl)))
        flux_watcher_start (rl->timer);
}

static void rc3_ended (struct runlevel *rl, int exit_code)
{
    if (rl->exit_code == 0)
        rl->exit_code = exit_code;
    set_timeout (rl, UNLOAD_TIMEOUT);
    unload_next (rl);
}

static void start_unload (struct runlevel *rl)
{
    drop_future (rl);
    set_state (rl, UNLOAD);
    if (rl->timer)
        flux_watcher_stop (rl->timer);
    run_rc (rl, "3", rc3_ended);
}

static void cleanup_next (struct runlevel *rl)
{
    const struct cleanup_step *step = &cleanup_steps[rl->next];
    flux_t *h = rl->b->h;

    if (rl->next == CLEANUP_STEPS) {
        start_unload (rl);
        return;
    }
    rl->next++;
    if (step->payload)
        rl->f = flux_rpc (h, step->topic, step->payload, FLUX_NODEID_ANY, 0);
    else
        rl->f = flux_rpc_pack (h,
                               step->topic,
                               FLUX_NODEID_ANY,
                               0,
                               "{s:b s:I s:i s:i s:s s:s}",
                               "dry_run", 0,
                               "userid", (json_int_t)FLUX_USERID_UNKNOWN,
                               "states", FLUX_JOB_STATE_RUN,
                               "severity", 0,
                               "type", "cancel",
                               "note", "instance shutdown");
    if (!rl->f || flux_future_then (rl->f, -1, cleanup_done, rl) < 0) {
        flux_log_error (h, "%s", step->topic);
        start_unload (rl);
    }
}

/* Unload modules
 */

static void unloaded (flux_future_t *f, void *arg)
{
    struct runlevel *rl = arg;

    if (flux_future_get (f, NULL) < 0 && errno != ENOENT) {
        fprintf (stderr, "flux start: error unloading a module: %s\n",
                 future_strerror (f, errno));
        drop_future (rl);
        flux_reactor_stop (rl->b->reactor);
        return;
    }
    drop_future (rl);
    unload_next (rl);
}

static void unload_next (struct runlevel *rl)
{
    json_t *names = modules_names (rl->b);
    json_t *name = json_array_get (names, 0);

    if (!name) {
        set_state (rl, DONE);
        flux_reactor_stop (rl->b->reactor);
    }
    else if (!(rl->f = flux_rpc_pack (rl->b->h,
                                      "module.remove",
                                      FLUX_NODEID_ANY,
                                      0,
                                      "{s:O}",
                                      "name", name))
             || flux_future_then (rl->f, -1, unloaded, rl) < 0)
        flux_reactor_stop (rl->b->reactor);
    json_decref (names);
}

void runlevel_shutdown (struct runlevel *rl, int exit_code)
{
    const char *s;
    double timeout;

    rl->stop = true;
    if (rl->pid > 0) {          // there is more to do when it has ended
        (void)kill (rl->pid, SIGHUP);
        (void)kill (rl->pid, SIGTERM);
    }
    if (rl->state >= CLEANUP)
        return;
    if (rl->exit_code == 0)
        rl->exit_code = exit_code;
    if (rl->pid > 0)
        return;
    drop_future (rl);
    if (getenv ("FLUX_DISABLE_JOB_CLEANUP")) {
        start_unload (rl);
        return;
    }
    s = attr_get (rl->b->attrs, "broker.cleanup-timeout");
    timeout = s ? strtod (s, NULL) : 0.;
    set_state (rl, CLEANUP);
    set_timeout (rl, timeout > 0 ? timeout : CLEANUP_TIMEOUT);
    cleanup_next (rl);
}

bool runlevel_stopping (struct runlevel *rl)
{
    return rl->state >= CLEANUP;
}

int runlevel_exit_code (struct runlevel *rl)
{
    return rl->exit_code;
}

static void add_module (struct runlevel *rl, const char *name, json_t *args)
{
    json_array_append_new (rl->modules,
                           json_pack ("{s:s s:o}",
                                      "path", name,
                                      "args", args ? json_incref (args)
                                                   : json_array ()));
}

/* The modules of an instance, then those of the configuration's array
 * "modules": [{"module": NAME or PATH, "name": NAME, "args": [...]}].
 */
static void list_modules (struct runlevel *rl)
{
    static const char *names[] = {
        "job-manager", "job-ingest", "job-info", "job-list", "job-exec",
    };
    json_t *more = json_object_get (config_get (rl->b->config), "modules");
    const char *rc1 = attr_get (rl->b->attrs, "broker.rc1_path");
    size_t i;
    json_t *entry;

    if (!rc1 || *rc1) {         // tests turn it off, as with flux-core
        add_module (rl, "kvs", rl->opts->kvs_args);
        add_module (rl, "resource", rl->opts->resource_args);
        for (i = 0; i < sizeof (names) / sizeof (names[0]); i++)
            add_module (rl, names[i], NULL);
        if (strcmp (rl->opts->scheduler, "none") != 0) {
            modules_prestart (rl->b->modules, rl->opts->scheduler);
            add_module (rl, rl->opts->scheduler, NULL);
        }
    }
    json_array_foreach (more, i, entry) {
        const char *module = NULL;
        json_t *args = NULL;
        json_t *name;

        if (json_unpack (entry, "{s:s s?o}", "module", &module, "args", &args)
            == 0)
            add_module (rl, module, args);
        if (module && (name = json_object_get (entry, "name")))
            json_object_set (json_array_get (rl->modules,
                                             json_array_size (rl->modules) - 1),
                             "name",
                             name);
    }
}

void runlevel_start (struct runlevel *rl)
{
    list_modules (rl);
    load_next (rl);
}

static void module_failed (struct broker *b)
{
    runlevel_shutdown (b->runlevel, 1);
}

struct runlevel *runlevel_create (struct broker *b,
                                  const struct runlevel_opts *opts)
{
    struct runlevel *rl;

    if (!(rl = calloc (1, sizeof (*rl))))
        return NULL;
    rl->b = b;
    b->module_failed = module_failed;
    rl->opts = opts;
    rl->pid = -1;
    if (!(rl->modules = json_array ())) {
        runlevel_destroy (rl);
        return NULL;
    }
    return rl;
}

void runlevel_destroy (struct runlevel *rl)
{
    if (rl) {
        ERRNO_SAFE_BLOCK;
        flux_future_destroy (rl->f);
        process_watcher_destroy (rl->process_w);
        flux_watcher_destroy (rl->timer);
        json_decref (rl->modules);
        free (rl);
    }
}

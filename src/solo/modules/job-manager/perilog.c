/* SPDX-License-Identifier: LGPL-3.0-only */
/* perilog.c - jobtap plugin perilog.so: runs the commands of
 * [job-manager.prolog] and [job-manager.epilog].
 *
 * With per-rank = true a command runs once for each node of the job, otherwise
 * once.  All made-up nodes being this host, HOSTNAME says which node a process
 * stands for.  A job that had a prolog gets the epilog too, whether or not it
 * ran.  Loaded as in flux-core, by the [job-manager] plugins configuration.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <jansson.h>
#include <flux/core.h>
#include <flux/hostlist.h>
#include <flux/idset.h>
#include <flux/jobtap.h>

#include "jobutil.h"

extern char **environ;

/* One of the two tables.
 */
struct table {
    json_t *command;            // NULL: not configured
    int per_rank;
    int cancel_on_exception;
    double timeout;             // 0: none
    double kill_timeout;
};

struct perilog {
    flux_plugin_t *p;
    struct table prolog;
    struct table epilog;
};

/* The processes of one job's prolog or epilog.
 */
struct run {
    struct perilog *ctx;
    flux_jobid_t id;
    uint32_t userid;
    json_t *R;
    bool prolog;
    struct table table;         // as it was at the start
    struct flux_subprocess **procs;
    char **hosts;
    unsigned int *ranks;
    size_t count;
    size_t active;
    int status;                 // greatest wait status
    struct idset *failed;
    struct idset *all;          // ranks of the job
    bool canceled;
    bool timed_out;
    bool drained;               // did not end upon SIGTERM
    flux_watcher_t *timer;
};

/* Names of the job's aux items. */
#define PROLOG "perilog::prolog"
#define EPILOG "perilog::epilog"

static const char *what (struct run *run)
{
    return run->prolog ? "prolog" : "epilog";
}

static void run_destroy (struct run *run)
{
    if (run) {
        int saved_errno = errno;
        for (size_t i = 0; i < run->count; i++) {
            if (run->procs)
                flux_subprocess_destroy (run->procs[i]);
            if (run->hosts)
                free (run->hosts[i]);
        }
        free (run->procs);
        free (run->hosts);
        free (run->ranks);
        idset_destroy (run->failed);
        idset_destroy (run->all);
        flux_watcher_destroy (run->timer);
        json_decref (run->table.command);
        json_decref (run->R);
        free (run);
        errno = saved_errno;
    }
}

static int run_start (struct perilog *ctx, bool prolog, flux_jobid_t id,
                      uint32_t userid, json_t *R);

/* The nodes of R, by name and rank; only one of them without per-rank.
 */
static int find_nodes (struct run *run)
{
    struct hostlist *hl = hostlist_create ();
    json_t *lite;
    json_t *list;
    json_t *entry;
    size_t index;
    size_t max = run->table.per_rank ? SIZE_MAX : 1;
    int rc = -1;

    errno = EPROTO;
    if (!hl
        || json_unpack (run->R,
                        "{s:{s:o s:o}}",
                        "execution",
                          "R_lite", &lite,
                          "nodelist", &list) < 0)
        goto done;
    json_array_foreach (list, index, entry) {
        const char *s = json_string_value (entry);
        if (!s || hostlist_append (hl, s) < 0)
            goto done;
    }
    if (max > (size_t)hostlist_count (hl))
        max = hostlist_count (hl);
    if (!(run->procs = calloc (max + 1, sizeof (run->procs[0])))
        || !(run->hosts = calloc (max + 1, sizeof (run->hosts[0])))
        || !(run->ranks = calloc (max + 1, sizeof (run->ranks[0]))))
        goto done;
    json_array_foreach (lite, index, entry) {
        const char *s = json_string_value (json_object_get (entry, "rank"));
        struct idset *ids = s ? idset_decode (s) : NULL;
        if (!ids || idset_add (run->all, ids) < 0) {
            idset_destroy (ids);
            goto done;
        }
        for (unsigned int rank = idset_first (ids);
             rank != IDSET_INVALID_ID && run->count < max;
             rank = idset_next (ids, rank)) {
            const char *host = hostlist_nth (hl, run->count);
            if (!host || !(run->hosts[run->count] = strdup (host)))
                break;
            run->ranks[run->count++] = rank;
        }
        idset_destroy (ids);
    }
    rc = run->count > 0 ? 0 : -1;
done:
    hostlist_destroy (hl);
    return rc;
}

static bool job_failed (struct run *run)
{
    return flux_jobtap_job_event_posted (run->ctx->p,
                                         run->id,
                                         "exception") == 1;
}

/* Say what went wrong, and on which nodes.
 */
static char *describe (struct run *run)
{
    char *ids = idset_encode (run->failed, IDSET_FLAG_RANGE);
    struct hostlist *hl = hostlist_create ();
    char *hosts = NULL;
    char *text = NULL;
    int code = WIFEXITED (run->status) ? WEXITSTATUS (run->status) : 0;
    int rc;

    for (size_t i = 0; hl && i < run->count; i++) {
        if (idset_test (run->failed, run->ranks[i]))
            (void)hostlist_append (hl, run->hosts[i]);
    }
    hosts = hl ? hostlist_encode (hl) : NULL;
    if (run->timed_out || (run->canceled && run->drained))
        rc = asprintf (&text,
                       "%s %s on %s (rank %s)",
                       what (run),
                       run->timed_out ? "timed out" : "canceled then timed out",
                       hosts,
                       ids);
    else if (WIFSIGNALED (run->status) || code > 128)
        rc = asprintf (&text,
                       "%s killed by signal %d on %s (rank %s)",
                       what (run),
                       WIFSIGNALED (run->status) ? WTERMSIG (run->status)
                                                 : code - 128,
                       hosts,
                       ids);
    else
        rc = asprintf (&text,
                       "%s exited with code=%d on %s (rank %s)",
                       what (run),
                       code,
                       hosts,
                       ids);
    hostlist_destroy (hl);
    free (hosts);
    free (ids);
    return rc < 0 ? NULL : text;
}

static void raise_failure (struct run *run)
{
    flux_plugin_t *p = run->ctx->p;
    char *text = describe (run);

    /* A failed epilog does not change what became of the job. */
    if (flux_jobtap_raise_exception (p,
                                     run->id,
                                     what (run),
                                     run->prolog ? 0 : 2,
                                     "%s",
                                     text ? text : "failed") < 0)
        flux_log_error (flux_jobtap_get_flux (p),
                        "%s: raise exception",
                        idf58 (run->id));
    free (text);
}

/* All processes have ended: let the job go on.  Then 'run' is no more.
 */
static void finish (struct run *run)
{
    struct perilog *ctx = run->ctx;
    flux_jobid_t id = run->id;
    int status = run->status;
    int rc;

    if (status != 0 && (!run->canceled || run->drained))
        raise_failure (run);
    if (!run->prolog) {
        (void)flux_jobtap_job_aux_set (ctx->p, id, EPILOG, NULL, NULL);
        flux_jobtap_job_unsubscribe (ctx->p, id);
        rc = flux_jobtap_epilog_finish (ctx->p,
                                        id,
                                        "job-manager.epilog",
                                        status);
    }
    else {
        /* The epilog must hold the job before the prolog lets it go. */
        if (ctx->epilog.command && job_failed (run)
            && flux_jobtap_event_post_pack (ctx->p,
                                            id,
                                            "epilog-start",
                                            "{s:s}",
                                            "description",
                                              "job-manager.epilog") == 0
            && run_start (ctx, false, id, run->userid, run->R) < 0)
            (void)flux_jobtap_epilog_finish (ctx->p,
                                             id,
                                             "job-manager.epilog",
                                             1);
        (void)flux_jobtap_job_aux_set (ctx->p, id, PROLOG, NULL, NULL);
        rc = flux_jobtap_prolog_finish (ctx->p,
                                        id,
                                        "job-manager.prolog",
                                        status);
    }
    if (rc < 0)
        flux_log_error (flux_jobtap_get_flux (ctx->p),
                        "%s: posting finish event",
                        idf58 (id));
}

static void one_ended (struct run *run, size_t i, int status)
{
    if (status > run->status)
        run->status = status;
    if (status != 0)
        (void)idset_set (run->failed, run->ranks[i]);
    if (--run->active == 0)
        finish (run);
}

static size_t find_proc (struct run *run, flux_subprocess_t *p)
{
    size_t i = 0;

    while (run->procs[i] != p)
        i++;
    return i;
}

static void completion_cb (flux_subprocess_t *p)
{
    struct run *run = flux_subprocess_aux_get (p, "run");

    one_ended (run, find_proc (run, p), flux_subprocess_status (p));
}

static void output_cb (flux_subprocess_t *p, const char *stream)
{
    struct run *run = flux_subprocess_aux_get (p, "run");
    const char *line;
    int n = flux_subprocess_getline (p, stream, &line);

    if (n > 0 && line[n - 1] == '\n')
        n--;
    if (n > 0)
        flux_log (flux_jobtap_get_flux (run->ctx->p),
                  streq (stream, "stderr") ? LOG_ERR : LOG_INFO,
                  "%s: %s: %s (rank %u): %s: %.*s",
                  idf58 (run->id),
                  what (run),
                  run->hosts[find_proc (run, p)],
                  run->ranks[find_proc (run, p)],
                  stream,
                  n,
                  line);
}

static void signal_all (struct run *run, int signum)
{
    for (size_t i = 0; i < run->count; i++) {
        if (run->procs[i] && flux_subprocess_active (run->procs[i]))
            flux_future_destroy (flux_subprocess_kill (run->procs[i], signum));
    }
}

/* They did not end upon SIGTERM: kill them, and take their nodes out of
 * service, since nobody knows what they left behind.
 */
static void kill_cb (flux_reactor_t *r, flux_watcher_t *w,
                     int revents, void *arg)
{
    struct run *run = arg;
    flux_t *h = flux_jobtap_get_flux (run->ctx->p);

    for (size_t i = 0; i < run->count; i++) {
        char rank[16];
        char reason[128];
        if (!run->procs[i] || !flux_subprocess_active (run->procs[i]))
            continue;
        snprintf (rank, sizeof (rank), "%u", run->ranks[i]);
        snprintf (reason,
                  sizeof (reason),
                  "%s %s for jobid %s",
                  what (run),
                  run->timed_out ? "timed out" : "canceled then timed out",
                  idf58 (run->id));
        flux_future_destroy (flux_rpc_pack (h,
                                            "resource.drain",
                                            FLUX_NODEID_ANY,
                                            0,
                                            "{s:s s:s s:s}",
                                            "targets", rank,
                                            "reason", reason,
                                            "mode", "update"));
    }
    run->drained = true;
    signal_all (run, SIGKILL);
}

static int set_timer (struct run *run, double after, flux_watcher_f cb)
{
    flux_t *h = flux_jobtap_get_flux (run->ctx->p);

    flux_watcher_destroy (run->timer);
    if (!(run->timer = flux_timer_watcher_create (flux_get_reactor (h),
                                                  after,
                                                  0.,
                                                  cb,
                                                  run)))
        return -1;
    flux_watcher_start (run->timer);
    return 0;
}

static void terminate (struct run *run)
{
    signal_all (run, SIGTERM);
    if (set_timer (run, run->table.kill_timeout, kill_cb) < 0)
        signal_all (run, SIGKILL);
}

static void timeout_cb (flux_reactor_t *r, flux_watcher_t *w,
                        int revents, void *arg)
{
    struct run *run = arg;

    run->timed_out = true;
    terminate (run);
}

static flux_cmd_t *command (struct run *run, size_t i)
{
    flux_cmd_t *cmd = flux_cmd_create (0, NULL, environ);
    char *ranks = NULL;
    size_t index;
    json_t *arg;
    int rc = 0;

    if (!cmd)
        return NULL;
    json_array_foreach (run->table.command, index, arg)
        rc |= flux_cmd_argv_append (cmd, json_string_value (arg));
    rc |= flux_cmd_setenvf (cmd, 1, "FLUX_JOB_ID", "%s", idf58 (run->id));
    rc |= flux_cmd_setenvf (cmd, 1, "FLUX_JOB_USERID", "%u", run->userid);
    rc |= flux_cmd_setenvf (cmd, 1, "HOSTNAME", "%s", run->hosts[i]);
    if ((ranks = idset_encode (run->all, IDSET_FLAG_RANGE)))
        rc |= flux_cmd_setenvf (cmd, 1, "FLUX_JOB_RANKS", "%s", ranks);
    free (ranks);
    if (rc == 0)
        return cmd;
    flux_cmd_destroy (cmd);
    return NULL;
}

/* Start a job's prolog or epilog, which its eventlog says has started.
 */
static int run_start (struct perilog *ctx, bool prolog, flux_jobid_t id,
                      uint32_t userid, json_t *R)
{
    static const flux_subprocess_ops_t ops = {
        .on_completion = completion_cb,
        .on_stdout = output_cb,
        .on_stderr = output_cb,
    };
    flux_t *h = flux_jobtap_get_flux (ctx->p);
    struct run *run;

    if (!(run = calloc (1, sizeof (*run))))
        return -1;
    run->ctx = ctx;
    run->id = id;
    run->userid = userid;
    run->prolog = prolog;
    run->R = json_incref (R);
    run->table = prolog ? ctx->prolog : ctx->epilog;
    json_incref (run->table.command);
    if (!(run->failed = idset_create (0, IDSET_FLAG_AUTOGROW))
        || !(run->all = idset_create (0, IDSET_FLAG_AUTOGROW))
        || find_nodes (run) < 0
        || (run->table.timeout > 0.
            && set_timer (run, run->table.timeout, timeout_cb) < 0)
        || flux_jobtap_job_aux_set (ctx->p,
                                    id,
                                    prolog ? PROLOG : EPILOG,
                                    run,
                                    (flux_free_f)run_destroy) < 0) {
        flux_log_error (h, "%s: %s", idf58 (id), what (run));
        run_destroy (run);
        return -1;
    }
    run->active = run->count + 1; // one for this function
    for (size_t i = 0; i < run->count; i++) {
        flux_cmd_t *cmd = command (run, i);
        if (!cmd
            || !(run->procs[i] = flux_local_exec (flux_get_reactor (h),
                                                  0,
                                                  cmd,
                                                  &ops))
            || flux_subprocess_aux_set (run->procs[i], "run", run, NULL) < 0) {
            flux_log_error (h, "%s: starting %s", idf58 (id), what (run));
            one_ended (run, i, 127 << 8);
        }
        else
            (void)flux_subprocess_close (run->procs[i], "stdin");
        flux_cmd_destroy (cmd);
    }
    if (--run->active == 0)
        finish (run);
    return 0;
}

/* Callbacks
 */

static int state_run_cb (flux_plugin_t *p, const char *topic,
                         flux_plugin_arg_t *args, void *arg)
{
    struct perilog *ctx = arg;
    flux_jobid_t id;
    uint32_t userid;
    json_t *R;

    /* Without a subscription there is no job.event.* callback. */
    if ((ctx->prolog.command || ctx->epilog.command)
        && flux_jobtap_job_subscribe (p, FLUX_JOBTAP_CURRENT_JOB) < 0)
        flux_log_error (flux_jobtap_get_flux (p), "subscribe to job events");
    if (!ctx->prolog.command)
        return 0;
    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:I s:i s:o}",
                                "id", &id,
                                "userid", &userid,
                                "R", &R) < 0
        || flux_jobtap_prolog_start (p, "job-manager.prolog") < 0) {
        flux_log_error (flux_jobtap_get_flux (p), "prolog-start");
        return -1;
    }
    if (run_start (ctx, true, id, userid, R) < 0) {
        (void)flux_jobtap_raise_exception (p, id, "prolog", 0,
                                           "could not start prolog");
        (void)flux_jobtap_prolog_finish (p, id, "job-manager.prolog", 1);
    }
    return 0;
}

static int finish_cb (flux_plugin_t *p, const char *topic,
                      flux_plugin_arg_t *args, void *arg)
{
    struct perilog *ctx = arg;
    flux_jobid_t id;
    uint32_t userid;
    json_t *R;

    if (!ctx->epilog.command)
        return 0;
    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:I s:i s:o}",
                                "id", &id,
                                "userid", &userid,
                                "R", &R) < 0
        || flux_jobtap_epilog_start (p, "job-manager.epilog") < 0) {
        flux_log_error (flux_jobtap_get_flux (p), "epilog-start");
        return -1;
    }
    if (run_start (ctx, false, id, userid, R) < 0)
        (void)flux_jobtap_epilog_finish (p, id, "job-manager.epilog", 1);
    return 0;
}

static int exception_cb (flux_plugin_t *p, const char *topic,
                         flux_plugin_arg_t *args, void *arg)
{
    static const char *const names[] = { PROLOG, EPILOG };
    flux_jobid_t id;
    int severity;

    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:I s:{s:{s:i}}}",
                                "id", &id,
                                "entry",
                                  "context",
                                    "severity", &severity) < 0
        || severity > 0)
        return 0;
    for (int i = 0; i < 2; i++) {
        struct run *run = flux_jobtap_job_aux_get (p, id, names[i]);
        if (run && !run->canceled && run->table.cancel_on_exception) {
            run->canceled = true;
            terminate (run);
        }
    }
    return 0;
}

static int parse_duration (json_t *o, double *dp)
{
    const char *s = json_string_value (o);
    char *end;

    if (json_is_number (o)) {
        *dp = json_number_value (o);
        return *dp < 0. ? -1 : 0;
    }
    *dp = 0.;
    if (!o || (s && streq (s, "infinity")))
        return o ? 0 : -1;
    *dp = s ? strtod (s, &end) : -1.;
    if (!s || end == s || *dp < 0.)
        return -1;
    if (streq (end, "ms"))
        *dp /= 1000.;
    else if (streq (end, "m"))
        *dp *= 60.;
    else if (streq (end, "h"))
        *dp *= 3600.;
    else if (streq (end, "d"))
        *dp *= 86400.;
    else
        return *end && !streq (end, "s") ? -1 : 0;
    return 0;
}

static int parse_table (json_t *conf, const char *name, struct table *table,
                        flux_error_t *errp)
{
    json_t *o = jp_get (conf, name);
    json_t *timeout = NULL;
    json_t *arg;
    size_t index;
    json_error_t error;

    if (!o)
        return 0;
    table->kill_timeout = 60.;
    if (json_unpack_ex (o,
                        &error,
                        0,
                        "{s:o s?b s?b s?F s?o}",
                        "command", &table->command,
                        "per-rank", &table->per_rank,
                        "cancel-on-exception", &table->cancel_on_exception,
                        "kill-timeout", &table->kill_timeout,
                        "timeout", &timeout) < 0) {
        table->command = NULL;
        return set_error (errp, "[%s]: %s", name, error.text);
    }
    json_incref (table->command);
    if (timeout && parse_duration (timeout, &table->timeout) < 0)
        return set_error (errp, "[%s]: invalid timeout", name);
    if (json_array_size (table->command) == 0)
        return set_error (errp, "[%s]: invalid command", name);
    json_array_foreach (table->command, index, arg) {
        if (!json_is_string (arg))
            return set_error (errp, "[%s]: invalid command", name);
    }
    return 0;
}

/* Take a new configuration, or leave the old one in place.
 */
static int configure (struct perilog *ctx, json_t *conf, flux_error_t *errp)
{
    struct table prolog = { .cancel_on_exception = 1, .timeout = 1800. };
    struct table epilog = { 0 };

    if (parse_table (conf, "job-manager.prolog", &prolog, errp) < 0
        || parse_table (conf, "job-manager.epilog", &epilog, errp) < 0) {
        json_decref (prolog.command);
        json_decref (epilog.command);
        return -1;
    }
    json_decref (ctx->prolog.command);
    json_decref (ctx->epilog.command);
    ctx->prolog = prolog;
    ctx->epilog = epilog;
    return 0;
}

static int conf_update_cb (flux_plugin_t *p, const char *topic,
                           flux_plugin_arg_t *args, void *arg)
{
    json_t *conf;
    flux_error_t error;

    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:o}",
                                "conf", &conf) < 0)
        return flux_jobtap_error (p, args, "perilog: no configuration");
    if (configure (arg, conf, &error) < 0)
        return flux_jobtap_error (p, args, "perilog: %s", error.text);
    return 0;
}

static void perilog_destroy (void *arg)
{
    struct perilog *ctx = arg;

    json_decref (ctx->prolog.command);
    json_decref (ctx->epilog.command);
    free (ctx);
}

static const struct flux_plugin_handler tab[] = {
    { "job.state.run", state_run_cb, NULL },
    { "job.event.finish", finish_cb, NULL },
    { "job.event.exception", exception_cb, NULL },
    { "conf.update", conf_update_cb, NULL },
    { 0 },
};

int flux_plugin_init (flux_plugin_t *p)
{
    struct perilog *ctx;

    if (flux_plugin_set_name (p, "perilog") < 0
        || !(ctx = calloc (1, sizeof (*ctx))))
        return -1;
    ctx->p = p;
    if (flux_plugin_aux_set (p, "perilog", ctx, perilog_destroy) < 0) {
        perilog_destroy (ctx);
        return -1;
    }
    for (const struct flux_plugin_handler *t = tab; t->topic; t++) {
        if (flux_plugin_add_handler (p, t->topic, t->cb, ctx) < 0)
            return -1;
    }
    return 0;
}

// vi: ts=4 sw=4 expandtab

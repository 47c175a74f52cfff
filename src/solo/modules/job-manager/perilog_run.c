/* SPDX-License-Identifier: LGPL-3.0-only */
/* perilog_run.c - the processes of one job's prolog or epilog: starting them,
 * their output, their time limit, and what their end means for the job.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <flux/hostlist.h>
#include <flux/idset.h>
#include <flux/jobtap.h>

#include "jobutil.h"
#include "perilog.h"

extern char **environ;

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

static const char *what (struct run *run)
{
    return run->prolog ? "prolog" : "epilog";
}

static void signal_all (struct run *run, int signum)
{
    for (size_t i = 0; i < run->count; i++) {
        if (run->procs[i] && flux_subprocess_active (run->procs[i]))
            flux_future_destroy (flux_subprocess_kill (run->procs[i], signum));
    }
}

static void run_destroy (struct run *run)
{
    if (run) {
        int saved_errno = errno;
        signal_all (run, SIGKILL);
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

/* The nodes of R, by rank and name, which are in that order in its nodelist;
 * only one of them without per-rank.
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
        idset_destroy (ids);
    }
    for (unsigned int rank = idset_first (run->all);
         rank != IDSET_INVALID_ID && run->count < max;
         rank = idset_next (run->all, rank)) {
        const char *host = hostlist_nth (hl, run->count);
        if (!host || !(run->hosts[run->count] = strdup (host)))
            break;
        run->ranks[run->count++] = rank;
    }
    rc = run->count > 0 ? 0 : -1;
done:
    hostlist_destroy (hl);
    return rc;
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

void run_end_prolog (struct perilog *ctx, flux_jobid_t id, uint32_t userid,
                     json_t *R, int status)
{
    flux_plugin_t *p = ctx->p;
    flux_job_result_t result;

    /* A job that has ended already: its epilog must hold it before the prolog
     * lets it go.
     */
    if (ctx->epilog.command
        && flux_jobtap_get_job_result (p, id, &result) == 0
        && flux_jobtap_event_post_pack (p,
                                        id,
                                        "epilog-start",
                                        "{s:s}",
                                        "description",
                                          EPILOG_TEXT) == 0
        && run_start (ctx, false, id, userid, R) < 0)
        (void)flux_jobtap_epilog_finish (p, id, EPILOG_TEXT, 1);
    if (flux_jobtap_prolog_finish (p, id, PROLOG_TEXT, status) < 0)
        flux_log_error (flux_jobtap_get_flux (p),
                        "%s: prolog-finish",
                        idf58 (id));
}

/* All processes have ended: let the job go on.  Then 'run' is no more.
 */
static void finish (struct run *run)
{
    flux_plugin_t *p = run->ctx->p;
    flux_jobid_t id = run->id;
    int status = run->status;

    if (status != 0 && (!run->canceled || run->drained))
        raise_failure (run);
    if (run->prolog) {
        run_end_prolog (run->ctx, id, run->userid, run->R, status);
        (void)flux_jobtap_job_aux_set (p, id, PROLOG, NULL, NULL);
        return;
    }
    (void)flux_jobtap_job_aux_set (p, id, EPILOG, NULL, NULL);
    flux_jobtap_job_unsubscribe (p, id);
    if (flux_jobtap_epilog_finish (p, id, EPILOG_TEXT, status) < 0)
        flux_log_error (flux_jobtap_get_flux (p),
                        "%s: epilog-finish",
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

void run_cancel (struct run *run)
{
    if (!run->canceled && run->table.cancel_on_exception) {
        run->canceled = true;
        terminate (run);
    }
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

/* After a restart the command runs again: never two of it for a job.
 */
static void die_with_parent (flux_subprocess_t *p, void *arg)
{
    (void)prctl (PR_SET_PDEATHSIG, SIGKILL);
}

int run_start (struct perilog *ctx, bool prolog, flux_jobid_t id,
                      uint32_t userid, json_t *R)
{
    static const flux_subprocess_ops_t ops = {
        .on_completion = completion_cb,
        .on_stdout = output_cb,
        .on_stderr = output_cb,
    };
    static const flux_subprocess_hooks_t hooks = {
        .pre_exec = die_with_parent,
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
            || !(run->procs[i] = flux_local_exec_ex (flux_get_reactor (h),
                                                     0,
                                                     cmd,
                                                     &ops,
                                                     &hooks,
                                                     NULL,
                                                     NULL))
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

// vi: ts=4 sw=4 expandtab

/* SPDX-License-Identifier: LGPL-3.0-only */
/* shells.c - run a job as one flux-shell process per node of R.
 *
 * All of them run on this host, whatever names the nodes have; each is told
 * its rank.  The shells meet in barriers: a shell's request is held until
 * all shells of the job have sent theirs.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libutil/errno_safe.h"
#include "job-exec.h"

extern char **environ;

struct shells {
    size_t count;
    flux_subprocess_t **procs;  // by shell rank
    unsigned int *ranks;        // broker rank by shell rank
    size_t active;
    int status;
    int barriers;               // barriers passed
    struct flux_msglist *waiting;
};

static void answer_barrier (struct job *job, int errnum)
{
    struct shells *sh = job->data;
    const flux_msg_t *msg;

    while ((msg = flux_msglist_pop (sh->waiting))) {
        if ((errno = errnum))
            respond_error (job->h, msg, NULL);
        else
            respond_ok (job->h, msg);
        flux_msg_decref (msg);
    }
}

static void shells_destroy (struct job *job)
{
    struct shells *sh = job->data;

    if (sh) {
        ERRNO_SAFE_BLOCK;
        if (sh->waiting)
            answer_barrier (job, EIO);
        flux_msglist_destroy (sh->waiting);
        for (size_t i = 0; i < sh->count && sh->procs; i++)
            flux_subprocess_destroy (sh->procs[i]);
        free (sh->procs);
        free (sh->ranks);
        free (sh);
        job->data = NULL;
    }
}

static int shells_init (struct job *job)
{
    struct shells *sh;
    unsigned int rank = idset_first (job->ranks);

    if (!(sh = calloc (1, sizeof (*sh))))
        return -1;
    job->ops = &shell_ops;
    job->data = sh;
    sh->count = idset_count (job->ranks);
    if (!(sh->procs = calloc (sh->count, sizeof (sh->procs[0])))
        || !(sh->ranks = calloc (sh->count, sizeof (sh->ranks[0])))
        || !(sh->waiting = flux_msglist_create ()))
        return -1; // job's destructor frees
    for (size_t i = 0; i < sh->count; i++) {
        sh->ranks[i] = rank;
        rank = idset_next (job->ranks, rank);
    }
    return 1;
}

/* Path of the job shell: [exec] job-shell, else the one that was installed
 * next to this program.
 */
static int shell_path (struct job *job, char *buf, size_t size)
{
    const char *path;
    char exe[PATH_MAX];
    ssize_t n;

    path = json_string_value (jp_get (job->jobspec,
                                      "attributes.system.exec.job_shell"));
    if (path || (path = exec_config (job->h, "job-shell"))) {
        if (snprintf (buf, size, "%s", path) < (int)size)
            return 0;
    }
    else if ((n = readlink ("/proc/self/exe", exe, sizeof (exe) - 1)) > 0) {
        exe[n] = '\0';
        if (snprintf (buf, size, "%s/flux-shell", dirname (exe)) < (int)size)
            return 0;
    }
    errno = ENAMETOOLONG;
    return -1;
}

static flux_cmd_t *shell_command (struct job *job)
{
    flux_cmd_t *cmd;
    char path[PATH_MAX];
    const char *uri = flux_attr_get (job->h, "local-uri");

    if (shell_path (job, path, sizeof (path)) < 0
        || !(cmd = flux_cmd_create (0, NULL, environ)))
        return NULL;
    if ((uri && flux_cmd_setenvf (cmd, 1, "FLUX_URI", "%s", uri) < 0)
        || flux_cmd_setenvf (cmd, 1, "FLUX_KVS_NAMESPACE", "%s", job->ns) < 0
        || flux_cmd_argv_append (cmd, path) < 0
        || flux_cmd_argv_appendf (cmd, "%ju", (uintmax_t)job->id) < 0
        || flux_cmd_argv_append (cmd, "rank") < 0) {
        flux_cmd_destroy (cmd);
        return NULL;
    }
    // Not meant for jobs.
    flux_cmd_unsetenv (cmd, "NOTIFY_SOCKET");
    return cmd;
}

/* One shell has ended, or could not be started.
 */
static void shell_gone (struct job *job, size_t i, int status)
{
    struct shells *sh = job->data;

    if (status > sh->status)
        sh->status = status;
    sh->active--;
    if (i == 0)
        job_event (job,
                   "shell-exit",
                   "{s:i s:i}",
                   "rank", (int)sh->ranks[0],
                   "wait_status", status);
    /* The others would wait for it in vain. */
    if (sh->active > 0 && sh->barriers < 2) {
        answer_barrier (job, EIO);
        if (status != 0 && !job->exception)
            job_fatal (job,
                       0,
                       "shell rank %zu terminated before job start completed",
                       i);
    }
    else if (sh->active > 0 && WIFSIGNALED (status) && !job->exception)
        job_fatal (job,
                   0,
                   "shell rank %zu was killed by signal %d",
                   i,
                   WTERMSIG (status));
    if (sh->active == 0)
        job_complete (job, sh->status);
}

static void completion_cb (flux_subprocess_t *p)
{
    struct job *job = flux_subprocess_aux_get (p, "job");
    struct shells *sh = job->data;

    for (size_t i = 0; i < sh->count; i++) {
        if (sh->procs[i] == p) {
            shell_gone (job, i, flux_subprocess_status (p));
            break;
        }
    }
}

/* What a shell prints itself is recorded in the exec eventlog.
 */
static void output_cb (flux_subprocess_t *p, const char *stream)
{
    struct job *job = flux_subprocess_aux_get (p, "job");
    struct shells *sh = job->data;
    const char *data;
    int len = flux_subprocess_read (p, stream, &data);

    for (size_t i = 0; len > 0 && i < sh->count; i++) {
        if (sh->procs[i] == p) {
            char rank[16];
            snprintf (rank, sizeof (rank), "%u", sh->ranks[i]);
            job_event (job,
                       "log",
                       "{s:s s:s s:s s:s%}",
                       "component", "flux-shell",
                       "stream", stream,
                       "rank", rank,
                       "data", data, (size_t)len);
        }
    }
}

/* A shell does not outlive this program, nor this thread.
 */
static void die_with_parent (flux_subprocess_t *p, void *arg)
{
    (void)prctl (PR_SET_PDEATHSIG, SIGKILL);
}

static int shells_start (struct job *job)
{
    static const flux_subprocess_ops_t ops = {
        .on_completion = completion_cb,
        .on_stdout = output_cb,
        .on_stderr = output_cb,
    };
    static const flux_subprocess_hooks_t hooks = {
        .pre_exec = die_with_parent,
    };
    struct shells *sh = job->data;
    flux_cmd_t *cmd;

    if (job->reattach) {
        job_fatal (job, 0, "job shells were lost in a restart");
        job_complete (job, 1 << 8);
        return 0;
    }
    if (!(cmd = shell_command (job)))
        return -1;
    sh->active = sh->count;
    for (size_t i = 0; i < sh->count; i++) {
        int argc = flux_cmd_argc (cmd);
        if (!job->exception
            && flux_cmd_argv_delete (cmd, argc - 1) == 0
            && flux_cmd_argv_appendf (cmd, "%u", sh->ranks[i]) == 0
            && (sh->procs[i] = flux_local_exec_ex (flux_get_reactor (job->h),
                                                   0,
                                                   cmd,
                                                   &ops,
                                                   &hooks,
                                                   NULL,
                                                   NULL))
            && flux_subprocess_aux_set (sh->procs[i], "job", job, NULL) == 0)
            continue;
        /* Those not started have gone already; the exception ends the rest.
         */
        if (!job->exception)
            job_fatal (job, errno, "starting %s", flux_cmd_arg (cmd, 0));
        shell_gone (job, i, 127 << 8);
    }
    flux_cmd_destroy (cmd);
    if (!job->exception)
        job_started (job);
    return 0;
}

static void shells_kill (struct job *job, int signum)
{
    struct shells *sh = job->data;

    /* A shell in the barrier does not look at signals. */
    answer_barrier (job, EIO);
    for (size_t i = 0; i < sh->count; i++) {
        if (sh->procs[i] && flux_subprocess_active (sh->procs[i]))
            flux_future_destroy (flux_subprocess_kill (sh->procs[i], signum));
    }
}

static char *shells_active_ranks (struct job *job)
{
    struct shells *sh = job->data;
    struct idset *ids = idset_create (0, IDSET_FLAG_AUTOGROW);
    char *s = NULL;

    for (size_t i = 0; ids && i < sh->count; i++) {
        if (sh->procs[i] && flux_subprocess_active (sh->procs[i]))
            (void)idset_set (ids, sh->ranks[i]);
    }
    if (ids && idset_count (ids) > 0)
        s = idset_encode (ids, IDSET_FLAG_RANGE);
    idset_destroy (ids);
    return s;
}

/* job-exec.shell-barrier
 */
void shell_barrier_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    flux_jobid_t id;
    struct job *job;
    struct shells *sh;

    if (flux_request_unpack (msg, NULL, "{s:I}", "id", &id) < 0)
        goto error;
    if (!(job = exec_find_job (arg, id)) || job->ops != &shell_ops) {
        errno = ENOENT;
        goto error;
    }
    if (flux_msg_authorize (msg, job->userid) < 0)
        goto error;
    sh = job->data;
    if (job->exception || sh->active < sh->count) {
        errno = EIO;
        goto error;
    }
    if (flux_msglist_append (sh->waiting, msg) < 0)
        goto error;
    if ((size_t)flux_msglist_count (sh->waiting) == sh->count) {
        sh->barriers++;
        answer_barrier (job, 0);
    }
    return;
error:
    respond_error (h, msg, NULL);
}

const struct exec_ops shell_ops = {
    .name = "shells",
    .init = shells_init,
    .start = shells_start,
    .kill = shells_kill,
    .active_ranks = shells_active_ranks,
    .destroy = shells_destroy,
};

// vi: ts=4 sw=4 expandtab

/* SPDX-License-Identifier: LGPL-3.0-only */
/* limits.c - how jobs are made to end: the signals of a cancellation, ever
 * harder, and the time limit.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "job-exec.h"

/* The signal goes by way of the shell to all tasks.
 */
static void kill_tasks_cb (flux_reactor_t *r, flux_watcher_t *w,
                           int revents, void *arg)
{
    struct job *job = arg;

    flux_future_destroy (flux_job_kill (job->h,
                                        job->id,
                                        job->exec->kill_signal));
}

/* Not even then: kill the shells, with growing pauses, and give up at last.
 */
static void kill_shells_cb (flux_reactor_t *r, flux_watcher_t *w,
                            int revents, void *arg)
{
    struct job *job = arg;
    char *ranks;

    flux_watcher_stop (job->timer_kill_tasks);
    job->kill_timeout *= 2;
    if (job->kill_timeout > 300.)
        job->kill_timeout = 300.;
    flux_timer_watcher_reset (w, job->kill_timeout, 0.);
    flux_watcher_start (w);
    job->kill_count++;
    if (job->kill_count >= job->exec->max_kill_count
        && job->ops->active_ranks
        && (ranks = job->ops->active_ranks (job))) {
        char reason[128];
        snprintf (reason,
                  sizeof (reason),
                  "processes of job %s survive SIGKILL",
                  idf58 (job->id));
        flux_future_destroy (flux_rpc_pack (job->h,
                                            "resource.drain",
                                            FLUX_NODEID_ANY,
                                            0,
                                            "{s:s s:s s:s}",
                                            "targets", ranks,
                                            "reason", reason,
                                            "mode", "update"));
        free (ranks);
        job_complete (job, 1);
        return;
    }
    job->ops->kill (job, SIGKILL);
}

static flux_watcher_t *timer_start (struct job *job, double after,
                                    double repeat, flux_watcher_f cb)
{
    flux_watcher_t *w;

    if (!(w = flux_timer_watcher_create (flux_get_reactor (job->h),
                                         after,
                                         repeat,
                                         cb,
                                         job)))
        flux_log_error (job->h, "%s: timer", idf58 (job->id));
    flux_watcher_start (w);
    return w;
}

static void start_kill_timers (struct job *job)
{
    double t = job->kill_timeout;

    if (job->complete || job->timer_kill_tasks)
        return;
    job->timer_kill_tasks = timer_start (job, t, t, kill_tasks_cb);
    job->timer_kill_shells = timer_start (job, t * 5, 0., kill_shells_cb);
}

void job_cancel (struct job *job)
{
    if (job->complete)
        return;
    job->ops->kill (job, job->exec->term_signal);
    start_kill_timers (job);
}

static void expire_cb (flux_reactor_t *r, flux_watcher_t *w,
                       int revents, void *arg)
{
    struct job *job = arg;

    if (!job->exception)
        job_exception (job, "timeout", "resource allocation expired");
    job->exception = 1;
    job->ops->kill (job, SIGALRM);
    start_kill_timers (job);
}

/* A job that could begin only late, for its length, gets that time back.
 */
void job_set_expiration (struct job *job)
{
    double at = job->expiration;
    double delay = job->t0 - job->starttime;
    double left;

    flux_watcher_destroy (job->timer_expire);
    job->timer_expire = NULL;
    if (at <= 0. || job->complete)
        return;
    if (!job->reattach
        && job->starttime > 0.
        && delay * 100. > (at - job->starttime)
                          * job->exec->max_start_delay_percent)
        at += delay;
    left = at - now_realtime ();
    job->timer_expire = timer_start (job,
                                     left > 0. ? left : 0.,
                                     0.,
                                     expire_cb);
}

// vi: ts=4 sw=4 expandtab

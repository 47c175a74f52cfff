/* SPDX-License-Identifier: LGPL-3.0-only */
/* testexec.c - simulated execution, chosen by the jobspec's
 * attributes.system.exec.test: run_duration, wait_status.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job-exec.h"

struct test {
    double duration;
    int wait_status;
    int reattach_finish;
    flux_watcher_t *timer;
};

static int test_init (struct job *job)
{
    struct test *test;
    json_t *conf = jp_get (job->jobspec, "attributes.system.exec.test");
    json_t *limit = jp_get (job->jobspec, "attributes.system.duration");
    const char *duration = NULL;

    if (!conf)
        return 0;
    if (!(test = calloc (1, sizeof (*test))))
        return -1;
    job->data = test;
    job->ops = &test_ops;
    test->duration = json_number_value (limit);
    if (json_unpack (conf,
                     "{s?s s?i s?i}",
                     "run_duration", &duration,
                     "reattach_finish", &test->reattach_finish,
                     "wait_status", &test->wait_status) < 0
        || (duration && parse_duration (duration, &test->duration) < 0)) {
        errno = EINVAL;
        return -1;
    }
    return 1;
}

static void timer_cb (flux_reactor_t *r, flux_watcher_t *w,
                      int revents, void *arg)
{
    struct job *job = arg;
    struct test *test = job->data;

    flux_watcher_stop (w);
    job_complete (job, test->wait_status);
}

static int test_start (struct job *job)
{
    struct test *test = job->data;
    double left = test->duration;

    /* After a restart only the rest remains. */
    if (job->reattach) {
        left -= now_realtime () - job->starttime;
        if (test->reattach_finish || left < 0.)
            left = 0.;
    }
    job_started (job);
    if (!(test->timer = flux_timer_watcher_create (flux_get_reactor (job->h),
                                                   left,
                                                   0.,
                                                   timer_cb,
                                                   job)))
        return -1;
    flux_watcher_start (test->timer);
    return 0;
}

static void test_kill (struct job *job, int signum)
{
    struct test *test = job->data;

    flux_watcher_stop (test->timer);
    job_complete (job, signum);
}

static void test_destroy (struct job *job)
{
    struct test *test = job->data;

    if (test) {
        flux_watcher_destroy (test->timer);
        free (test);
    }
}

const struct exec_ops test_ops = {
    .name = "testexec",
    .init = test_init,
    .start = test_start,
    .kill = test_kill,
    .destroy = test_destroy,
};

// vi: ts=4 sw=4 expandtab

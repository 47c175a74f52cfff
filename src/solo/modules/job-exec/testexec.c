/* SPDX-License-Identifier: LGPL-3.0-only */
/* testexec.c - simulated execution, chosen by the jobspec's
 * attributes.system.exec.test: run_duration, wait_status, mock_exception
 * ("init", "run"), override (start and finish come by RPC).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job-exec.h"

struct test {
    double duration;
    int wait_status;
    int override;
    int reattach_finish;
    const char *mock;
    flux_watcher_t *timer;
};

static bool mocks (struct test *test, const char *where)
{
    return test->mock && streq (test->mock, where);
}

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
                     "{s?s s?i s?i s?i s?s}",
                     "run_duration", &duration,
                     "override", &test->override,
                     "reattach_finish", &test->reattach_finish,
                     "wait_status", &test->wait_status,
                     "mock_exception", &test->mock) < 0
        || (duration && parse_duration (duration, &test->duration) < 0)) {
        errno = EINVAL;
        return -1;
    }
    if (mocks (test, "init")) {
        job_fatal (job, 0, "mock initialization exception generated");
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

static int begin (struct job *job)
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
    if (test->override && test->duration <= 0.)
        return 0;
    if (!(test->timer = flux_timer_watcher_create (flux_get_reactor (job->h),
                                                   left,
                                                   0.,
                                                   timer_cb,
                                                   job)))
        return -1;
    flux_watcher_start (test->timer);
    return 0;
}

static int test_start (struct job *job)
{
    struct test *test = job->data;

    if (!test->override && begin (job) < 0)
        return -1;
    if (mocks (test, "run"))
        job_fatal (job, 0, "mock run exception generated");
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

/* job-exec.override: start or finish a job that waits for it.
 */
void test_override_cb (flux_t *h, flux_msg_handler_t *mh,
                       const flux_msg_t *msg, void *arg)
{
    const char *event;
    flux_jobid_t id;
    int status = 0;
    uint32_t userid;
    struct job *job;
    struct test *test;
    const char *text = NULL;

    if (flux_request_unpack (msg,
                             NULL,
                             "{s:s s:I s?i}",
                             "event", &event,
                             "jobid", &id,
                             "status", &status) < 0
        || flux_msg_get_userid (msg, &userid) < 0)
        goto error;
    if (!(job = exec_find_job (arg, id)) || job->ops != &test_ops) {
        text = "Job not found";
        errno = ENOENT;
        goto error;
    }
    if (userid != job->userid) {
        errno = EPERM;
        goto error;
    }
    test = job->data;
    errno = EINVAL;
    if (!test->override) {
        text = "Job not in exec override mode";
        goto error;
    }
    if (streq (event, "start")) {
        if (job->running) {
            text = "Job already running";
            goto error;
        }
        if (begin (job) < 0)
            goto error;
    }
    else if (streq (event, "finish")) {
        if (!job->running) {
            text = "Job not running";
            goto error;
        }
        flux_watcher_stop (test->timer);
        job_complete (job, status);
    }
    else {
        text = "Invalid event";
        goto error;
    }
    respond_ok (h, msg);
    return;
error:
    respond_error (h, msg, text);
}

const struct exec_ops test_ops = {
    .name = "testexec",
    .init = test_init,
    .start = test_start,
    .kill = test_kill,
    .destroy = test_destroy,
};

// vi: ts=4 sw=4 expandtab

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of overdue.c: which workflows are doubted, and when.
 */

#include "libdws/test/util.h"
#include "agent/agent.h"
#include "agent/overdue.h"
#include "facts/jobs.h"
#include "test/timers.h"

#define URI "interthread://overdue"
#define LOOK 60.

static struct world {
    flux_t *other;
    struct dws_ctx ctx;
    struct job job;
    struct dws_workflow wf;
    flux_watcher_t *overdue;
    enum dws_link link;
    int asked;
} w;

void jobs_each (struct jobs *jobs, void (*cb)(struct job *job, void *arg),
                void *arg)
{
    cb (&w.job, arg);
}

void jobs_doubt_workflow (struct job *job)
{
    assert_ptr_equal (job, &w.job);
    w.asked++;
}

enum dws_link agent_link (const struct agent *agent)
{
    return w.link;
}

static void setup (void)
{
    memset (&w, 0, sizeof (w));
    timers_count = 0;
    assert_non_null (w.other = flux_open (URI, 0));
    assert_non_null (w.ctx.h = flux_open (URI, 0));
    w.link = DWS_LINK_UP;
    w.job.ctx = &w.ctx;
    w.job.wf = &w.wf;
    w.job.version = 5;
    w.wf.desired = DWS_STATE_SETUP;
    w.wf.state = DWS_STATE_PROPOSAL;
    w.wf.ready = true;
    assert_non_null (w.overdue = overdue_create (&w.ctx));
}

static void teardown (void)
{
    job_slots_clear (&w.job);
    flux_watcher_destroy (w.overdue);
    flux_close (w.ctx.h);
    flux_close (w.other);
}

static void look (int count)
{
    for (int i = 0; i < count; i++)
        timer_fire (w.overdue, LOOK);
}

/* At the second look, and then after twice as many each time.
 */
static void test_still (void **state)
{
    setup ();
    look (1);
    assert_int_equal (w.asked, 0);
    look (1);
    assert_int_equal (w.asked, 1);
    look (1);
    assert_int_equal (w.asked, 2);
    look (1);
    assert_int_equal (w.asked, 2);
    look (1);
    assert_int_equal (w.asked, 3);
    look (59);
    assert_int_equal (w.asked, 6);
    w.job.version++;
    look (1);
    assert_int_equal (w.asked, 6);
    look (1);
    assert_int_equal (w.asked, 7);
    teardown ();
}

/* It is where it should be, there is none, or nobody could answer.
 */
static void test_not_awaited (void **state)
{
    setup ();
    w.wf.state = w.wf.desired;
    look (4);
    assert_int_equal (w.asked, 0);
    w.wf.ready = false;
    look (2);
    assert_int_equal (w.asked, 2);
    w.wf.ready = true;
    look (2);
    assert_int_equal (w.asked, 2);
    w.wf.deleting = true;
    look (1);
    assert_int_equal (w.asked, 3);
    w.link = DWS_LINK_NO_SERVER;
    look (8);
    assert_int_equal (w.asked, 3);
    w.link = DWS_LINK_UP;
    w.job.wf = NULL;
    look (8);
    assert_int_equal (w.asked, 3);
    teardown ();
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_still),
        cmocka_unit_test (test_not_awaited),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

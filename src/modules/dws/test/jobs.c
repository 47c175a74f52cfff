/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of jobs.c: what is under way, what is tried again, and what goes
 * with a workflow. Nothing is done about jobs: the test says what comes of it.
 */

#include "libdws/test/util.h"
#include "../actions.h"
#include "../agent.h"
#include "../annotate.h"
#include "../config.h"
#include "../explain.h"
#include "../holds.h"
#include "../jobs.h"
#include "../losses.h"
#include "../sync.h"
#include "timers.h"

#define URI "interthread://jobs"

static int ended;               // workflows of which others were told

bool agent_ready (const struct agent *agent)
{
    return true;
}

bool sync_done (const struct sync *sync)
{
    return true;
}

void actions_run (struct job *job, const struct dws_actions *actions)
{
}

void annotate_start (struct annotate *annotate)
{
}

void note_destroy (struct note *note)
{
}

void explanation_destroy (struct explanation *explanation)
{
}

void losses_vanished (struct job *job)
{
    assert_non_null (job->wf);
}

void holds_end (struct job *job)
{
    ended++;
}

struct world {
    flux_t *other;              // end of the handle
    struct dws_config config;
    struct dws_ctx ctx;
};

static void setup (struct world *w)
{
    memset (w, 0, sizeof (*w));
    w->config.policy = (struct dws_policy)DWS_POLICY_DEFAULT;
    w->ctx.config = &w->config;
    w->ctx.instance = "me";
    timers_count = 0;
    ended = 0;
    assert_non_null (w->other = flux_open (URI, 0));
    assert_non_null (w->ctx.h = flux_open (URI, 0));
    assert_non_null (w->ctx.used = json_object ());
    assert_non_null (w->ctx.jobs = jobs_create (&w->ctx));
}

static void teardown (struct world *w)
{
    jobs_destroy (w->ctx.jobs);
    json_decref (w->ctx.used);
    flux_close (w->ctx.h);
    flux_close (w->other);
}

static void turn (struct world *w)
{
    for (int i = 0; i < 3; i++)
        assert_true (flux_reactor_run (flux_get_reactor (w->ctx.h),
                                       FLUX_REACTOR_NOWAIT) >= 0);
}

/* A workflow is seen. Returns the job.
 */
static struct job *see_of (struct world *w, int jobid, const char *uid,
                           int version, bool deleted)
{
    char text[512];
    json_t *o;

    snprintf (text, sizeof (text),
              "{'metadata': {'name': 'fluxjob-%d', 'namespace': 'default',"
              "  'uid': '%s', 'resourceVersion': '%d',"
              "  'labels': {'flux-framework.org/instance': 'me'}},"
              " 'spec': {'desiredState': 'Setup'},"
              " 'status': {'state': 'Setup', 'ready': false}}",
              jobid, uid, version);
    o = J (text);
    jobs_learn_workflow (w->ctx.jobs, o, deleted);
    json_decref (o);
    return jobs_find (w->ctx.jobs, jobid);
}

static struct job *see (struct world *w, const char *uid, int version,
                        bool deleted)
{
    return see_of (w, 77, uid, version, deleted);
}

/* As command_read_workflow() does.
 */
static void begin_read (struct job *job)
{
    job_begin (job, DWS_ACT_SAVE);
    job->reads++;
    job->reading |= DWS_SAVED (DWS_STATE_SETUP);
}

static bool is_busy (struct job *job, enum dws_action_kind kind)
{
    return (job->facts->busy & DWS_BUSY (kind)) != 0;
}

/* A record is kept until everything has ended, and no longer. Reads that have
 * no result yet end with the agent, also those of a workflow that is gone.
 */
static void test_reads (void **state)
{
    struct world w;
    struct job *job;

    setup (&w);
    assert_non_null (job = see (&w, "a", 1, false));
    begin_read (job);
    see (&w, "a", 2, true);
    see (&w, "b", 3, false);
    begin_read (job);
    see (&w, "b", 4, true);
    turn (&w);
    assert_ptr_equal (jobs_find (w.ctx.jobs, 77), job);
    assert_int_equal (job->under_way[DWS_ACT_SAVE], 2);
    jobs_agent_lost (w.ctx.jobs);
    assert_int_equal (job->under_way[DWS_ACT_SAVE], 0);
    assert_false (is_busy (job, DWS_ACT_SAVE));
    jobs_changed (job);
    turn (&w);
    assert_null (jobs_find (w.ctx.jobs, 77));
    teardown (&w);
}

/* A write to the KVS does not end with the agent.
 */
static void test_writes (void **state)
{
    struct world w;
    struct job *job;

    setup (&w);
    assert_non_null (job = see (&w, "a", 1, false));
    job_begin (job, DWS_ACT_SAVE);
    begin_read (job);
    jobs_agent_lost (w.ctx.jobs);
    assert_int_equal (job->under_way[DWS_ACT_SAVE], 1);
    assert_true (is_busy (job, DWS_ACT_SAVE));
    job_end (job, DWS_ACT_SAVE, true);
    assert_false (is_busy (job, DWS_ACT_SAVE));
    teardown (&w);
}

/* One of two commands fails, and it is time to try again before the result of
 * the other has come: that must not pass for one of the next attempt.
 */
static void test_late_result (void **state)
{
    struct world w;
    struct job *job;

    setup (&w);
    assert_non_null (job = see (&w, "a", 1, false));
    job_begin (job, DWS_ACT_SERVERS);
    job_begin (job, DWS_ACT_SERVERS);
    job_end (job, DWS_ACT_SERVERS, false);
    timer_fire (job->retry, 0.5);
    assert_true (is_busy (job, DWS_ACT_SERVERS));
    job_end (job, DWS_ACT_SERVERS, true);
    assert_true (is_busy (job, DWS_ACT_SERVERS));
    timer_fire (job->retry, 0.5);
    assert_false (is_busy (job, DWS_ACT_SERVERS));
    assert_false (flux_watcher_is_active (job->retry));
    teardown (&w);
}

/* The delay grows as long as one of them fails, and begins anew when all have
 * succeeded.
 */
static void test_backoff (void **state)
{
    static const double delays[] = { 0.5, 1., 2., 4., 8., 16., 32., 60., 60. };
    struct world w;
    struct job *job;

    setup (&w);
    assert_non_null (job = see (&w, "a", 1, false));
    for (size_t i = 0; i < sizeof (delays) / sizeof (delays[0]); i++) {
        job_begin (job, DWS_ACT_SERVERS);
        job_begin (job, DWS_ACT_SERVERS);
        job_end (job, DWS_ACT_SERVERS, false);
        job_end (job, DWS_ACT_SERVERS, true);
        timer_fire (job->retry, delays[i]);
        assert_false (is_busy (job, DWS_ACT_SERVERS));
    }
    job_begin (job, DWS_ACT_SERVERS);
    job_end (job, DWS_ACT_SERVERS, true);
    job_begin (job, DWS_ACT_SERVERS);
    job_end (job, DWS_ACT_SERVERS, false);
    timer_fire (job->retry, 0.5);
    job_begin (job, DWS_ACT_SERVERS);
    job_begin (job, DWS_ACT_SERVERS);
    job_end (job, DWS_ACT_SERVERS, false);
    job_end (job, DWS_ACT_SERVERS, false);
    timer_fire (job->retry, 2.);
    teardown (&w);
}

/* Another workflow of the same name is seen before the end of the first.
 */
static void test_replaced (void **state)
{
    struct world w;
    struct job *job;

    setup (&w);
    assert_non_null (job = see (&w, "a", 1, false));
    job->facts->saved = DWS_SAVED (DWS_STATE_PROPOSAL);
    assert_non_null (job->space = J ("{'rabbit0': 5}"));
    assert_int_equal (json_object_update (w.ctx.used, job->space), 0);
    see (&w, "a", 2, false);
    assert_json (w.ctx.used, "{'rabbit0': 5}");
    assert_int_equal (ended, 0);
    see (&w, "b", 3, false);
    see_of (&w, 78, "c", 4, false);
    assert_ptr_equal (jobs_find (w.ctx.jobs, 77), job);
    assert_string_equal (job->wf->uid, "b");
    assert_json (w.ctx.used, "{}");
    assert_int_equal (ended, 1);
    assert_int_equal (job->generation, 1);
    assert_int_equal (job->facts->saved, 0);
    see (&w, "a", 2, true);     // late news of the first
    assert_string_equal (job->wf->uid, "b");
    teardown (&w);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_reads),
        cmocka_unit_test (test_writes),
        cmocka_unit_test (test_late_result),
        cmocka_unit_test (test_backoff),
        cmocka_unit_test (test_replaced),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of jobs.c: what is under way, what is tried again, and what goes
 * with a workflow. Nothing is done about jobs: the test says what comes of it.
 */

#include "libdws/test/util.h"
#include "facts/config.h"
#include "facts/jobs.h"
#include "test/timers.h"
#include "test/moments.h"

#define URI "interthread://jobs"

static int ended;               // workflows of which others were told

static void decided (struct job *job, const struct dws_actions *actions)
{
}

static void ignore_job (struct job *job)
{
}

static void workflow_gone (struct job *job)
{
    assert_non_null (job->wf);
    ended++;
}

static int moved;               // changes of space

static void space_changed (struct dws_ctx *ctx)
{
    moved++;
}

static const struct dws_events events = {
    .decided = decided,
    .job_changed = ignore_job,
    .workflow_gone = workflow_gone,
    .job_forgotten = ignore_job,
    .space_changed = space_changed,
};

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
    w->ctx.events = &events;
    assert_non_null (w->ctx.space = space_create ());
    assert_non_null (w->ctx.jobs = jobs_create (&w->ctx));
    jobs_all_known (w->ctx.jobs, JOBS_OF_FLUX);
    jobs_all_known (w->ctx.jobs, JOBS_OF_KUBERNETES);
}

static void teardown (struct world *w)
{
    jobs_destroy (w->ctx.jobs);
    space_destroy (w->ctx.space);
    flux_close (w->ctx.h);
    flux_close (w->other);
}

static void turn (struct world *w)
{
    for (int i = 0; i < 3; i++)
        assert_true (flux_reactor_run (flux_get_reactor (w->ctx.h),
                                       FLUX_REACTOR_NOWAIT) >= 0);
}

static void learn (struct world *w, const char *text, bool deleted)
{
    json_t *o = J (text);
    struct dws_workflow *wf = dws_workflow_decode (o, w->ctx.instance, NULL);

    assert_non_null (wf);
    jobs_learn_workflow (w->ctx.jobs, wf, NULL, deleted);
    json_decref (o);
}

/* A workflow is seen. Returns the job.
 */
static struct job *see_of (struct world *w, int jobid, const char *uid,
                           int version, bool deleted)
{
    char text[512];

    snprintf (text, sizeof (text),
              "{'name': 'fluxjob-%d', 'namespace': 'default', 'uid': '%s',"
              " 'version': '%d', 'label': 'me', 'desired': 'Setup',"
              " 'state': 'Setup'}",
              jobid, uid, version);
    learn (w, text, deleted);
    return jobs_find (w->ctx.jobs, jobid);
}

static struct job *see (struct world *w, const char *uid, int version,
                        bool deleted)
{
    return see_of (w, 77, uid, version, deleted);
}

/* A workflow of flux-coral2 is seen. Returns the job.
 */
static struct job *see_stray (struct world *w, const char *jobid)
{
    char text[512];

    snprintf (text, sizeof (text),
              "{'name': 'fluxjob-77', 'namespace': 'default', 'uid': 'u',"
              " 'version': '1', 'desired': 'Setup', 'wlm': 'flux',"
              " 'noted': '%s', 'userid': 100, 'state': 'Setup'}", jobid);
    learn (w, text, false);
    return jobs_find (w->ctx.jobs, 77);
}

/* The Workflow object is read to be saved.
 */
static void begin_read (struct job *job)
{
    uint32_t bit = DWS_SAVED (DWS_STATE_SETUP);

    job_begin (job, DWS_ACT_SAVE, WAY_AGENT);
    underway_read_begin (&job->underway, bit);
    underway_save (&job->underway, job->facts, bit);
}

static void command_begin (struct job *job, enum dws_action_kind kind)
{
    job_begin (job, kind, WAY_AGENT);
}

static void command_end (struct job *job, enum dws_action_kind kind, bool ok)
{
    job_end (job, kind, WAY_AGENT, ok);
}

/* It is time to repeat what has failed, for which the timer was set so.
 */
static void retry_fire (struct job *job, double after)
{
    timer_fire (timer_of (job->retry), after);
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
    jobs_forget_workflow (job);
    turn (&w);
    assert_ptr_equal (jobs_find (w.ctx.jobs, 77), job);
    assert_true (underway_any (&job->underway));
    job_slot_mark (job, SLOT_TRANSIENT);
    job_slot_mark (job, SLOT_LEASES);
    jobs_agent_lost (w.ctx.jobs);
    assert_null (job_slot (job, SLOT_TRANSIENT));
    assert_non_null (job_slot (job, SLOT_LEASES));
    assert_false (underway_any (&job->underway));
    assert_false (is_busy (job, DWS_ACT_SAVE));
    jobs_all_known (w.ctx.jobs, JOBS_OF_KUBERNETES);
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
    job_begin (job, DWS_ACT_SAVE, WAY_FLUX);
    begin_read (job);
    assert_int_equal (job->facts->saved, DWS_SAVED (DWS_STATE_SETUP));
    jobs_agent_lost (w.ctx.jobs);
    assert_int_equal (job->facts->saved, 0);
    assert_true (underway_is_last (&job->underway, DWS_ACT_SAVE));
    assert_true (is_busy (job, DWS_ACT_SAVE));
    job_end (job, DWS_ACT_SAVE, WAY_FLUX, true);
    assert_false (is_busy (job, DWS_ACT_SAVE));
    teardown (&w);
}

/* A command does, of whatever kind of action, and an action that the agent
 * carries out does not wait for a retry when it has failed.
 */
static void test_commands (void **state)
{
    struct world w;
    struct job *job;

    setup (&w);
    assert_non_null (job = see (&w, "a", 1, false));
    for (int kind = 0; kind < DWS_ACT_COUNT; kind++) {
        job_begin (job, kind, WAY_AGENT);
        if (dws_action_needs_agent (kind)) {
            job_begin (job, kind, WAY_AGENT);
            job_end (job, kind, WAY_AGENT, false);
        }
        assert_true (is_busy (job, kind));
    }
    jobs_agent_lost (w.ctx.jobs);
    assert_int_equal (job->facts->busy, 0);
    assert_false (underway_any (&job->underway));
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
    command_begin (job, DWS_ACT_SERVERS);
    command_begin (job, DWS_ACT_SERVERS);
    command_end (job, DWS_ACT_SERVERS, false);
    retry_fire (job, 0.5);
    assert_true (is_busy (job, DWS_ACT_SERVERS));
    command_end (job, DWS_ACT_SERVERS, true);
    assert_true (is_busy (job, DWS_ACT_SERVERS));
    retry_fire (job, 0.5);
    assert_false (is_busy (job, DWS_ACT_SERVERS));
    assert_false (flux_watcher_is_active (timer_of (job->retry)));
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
        command_begin (job, DWS_ACT_SERVERS);
        command_begin (job, DWS_ACT_SERVERS);
        command_end (job, DWS_ACT_SERVERS, false);
        command_end (job, DWS_ACT_SERVERS, true);
        retry_fire (job, delays[i]);
        assert_false (is_busy (job, DWS_ACT_SERVERS));
    }
    command_begin (job, DWS_ACT_SERVERS);
    command_end (job, DWS_ACT_SERVERS, true);
    command_begin (job, DWS_ACT_SERVERS);
    command_end (job, DWS_ACT_SERVERS, false);
    retry_fire (job, 0.5);
    command_begin (job, DWS_ACT_SERVERS);
    command_begin (job, DWS_ACT_SERVERS);
    command_end (job, DWS_ACT_SERVERS, false);
    command_end (job, DWS_ACT_SERVERS, false);
    retry_fire (job, 2.);
    teardown (&w);
}

/* Another workflow of the same name is seen before the end of the first.
 */
static void test_replaced (void **state)
{
    struct world w;
    struct job *job;
    json_t *layout;

    setup (&w);
    assert_non_null (job = see (&w, "a", 1, false));
    job->facts->saved = DWS_SAVED (DWS_STATE_PROPOSAL);
    layout = J ("[{'servers': {'name': 's'}, 'allocationSets':"
                " [{'label': 'xfs', 'allocationSize': 5, 'storage':"
                " [{'name': 'rabbit0', 'allocationCount': 1}]}]}]");
    moved = 0;
    assert_int_equal (space_claim (w.ctx.space, &job->claim, layout), 0);
    json_decref (layout);
    see (&w, "a", 2, false);
    assert_bytes (space_used (w.ctx.space), "{'rabbit0': 65536}");
    assert_int_equal (moved, 0);
    assert_int_equal (ended, 0);
    see (&w, "b", 3, false);
    see_of (&w, 78, "c", 4, false);
    assert_ptr_equal (jobs_find (w.ctx.jobs, 77), job);
    assert_string_equal (job->wf->uid, "b");
    assert_bytes (space_used (w.ctx.space), "{}");
    assert_int_equal (ended, 1);
    assert_int_equal (moved, 1);
    assert_int_equal (job->generation, 1);
    assert_int_equal (job->facts->saved, 0);
    see (&w, "a", 2, true);     // late news of the first
    assert_string_equal (job->wf->uid, "b");
    teardown (&w);
}

/* That a watch has it as gone is not believed. What is read by its name then counts.
 */
static void test_doubted (void **state)
{
    struct world w;
    struct job *job;

    setup (&w);
    assert_non_null (job = see (&w, "a", 1, false));
    see (&w, "a", 2, true);
    assert_non_null (job->wf);
    assert_true (job->wf->doubted);
    assert_false (job->facts->absent);
    see (&w, "a", 1, false);    // older than that
    assert_true (job->wf->doubted);
    see (&w, "a", 2, false);
    assert_false (job->wf->doubted);
    jobs_doubt_workflow (job);
    jobs_forget_workflow (job);
    assert_null (job->wf);
    assert_true (job->facts->absent);
    see (&w, "b", 3, false);
    assert_false (job->facts->absent);
    jobs_forget_workflow (job);
    jobs_doubt_workflow (job);
    assert_null (job->wf);
    job_begin (job, DWS_ACT_CREATE, WAY_AGENT);
    jobs_agent_lost (w.ctx.jobs);
    assert_false (job->facts->absent);
    teardown (&w);
}

static void learn_labelled (struct world *w, const char *uid, int version,
                            const char *label, const char *maker)
{
    char text[512];

    snprintf (text, sizeof (text),
              "{'name': 'fluxjob-77', 'namespace': 'default', 'uid': '%s',"
              " 'version': '%d', 'label': '%s', '%s': '%s',"
              " 'desired': 'Setup', 'wlm': 'flux', 'state': 'Setup'}",
              uid, version, label, maker ? "maker" : "x", maker ? maker : "x");
    learn (w, text, false);
}

/* Whose a workflow is says the annotation that it was made with. One without, of an
 * older release, stays ours when somebody changes its label.
 */
static void test_label_changed (void **state)
{
    struct world w;
    struct job *job;

    setup (&w);
    learn_labelled (&w, "a", 1, "other", NULL);
    learn_labelled (&w, "a", 1, "me", "other");
    assert_null (jobs_find (w.ctx.jobs, 77));
    learn_labelled (&w, "a", 1, "other", "me");
    assert_non_null (job = jobs_find (w.ctx.jobs, 77));
    assert_true (job->wf->unlabelled);
    learn_labelled (&w, "a", 2, "me", "me");
    assert_false (job->wf->unlabelled);
    jobs_forget_workflow (job);
    see (&w, "b", 3, false);
    learn_labelled (&w, "b", 4, "other", NULL);
    assert_int_equal (job->wf->version, 4);
    assert_true (job->wf->ours);
    assert_true (job->wf->unlabelled);
    learn_labelled (&w, "c", 5, "other", NULL);
    assert_string_equal (job->wf->uid, "b");
    teardown (&w);
}

/* It is kept if it may be of a job here, and forgotten when it turns out not to be.
 */
static void test_stray (void **state)
{
    struct world w;
    struct job *job;

    setup (&w);
    assert_null (see_stray (&w, "x"));
    assert_null (see_stray (&w, "78"));
    assert_non_null (job = see_stray (&w, "77"));
    turn (&w);
    assert_non_null (job = jobs_find (w.ctx.jobs, 77));
    assert_true (job->wf->stray);
    job->facts->recalled = true;
    job->facts->remembered = true;
    job->facts->userid = 100;
    jobs_changed (job);
    turn (&w);
    assert_non_null (job = jobs_find (w.ctx.jobs, 77));
    assert_non_null (job->wf);
    job->facts->userid = 101;
    jobs_changed (job);
    turn (&w);
    assert_null (jobs_find (w.ctx.jobs, 77));
    assert_int_equal (ended, 0);
    teardown (&w);
}

static char slots[16];           // whose slots were destroyed, in that order

static void destroy_first (struct job *job, void *data)
{
    assert_non_null (job->facts);
    assert_null (job_slot (job, SLOT_WAITLIST));
    strcat (slots, data);
    free (data);
    job_slot_mark (job, SLOT_LATE);
}

static void destroy_last (struct job *job, void *data)
{
    assert_null (job_slot (job, SLOT_LATE));
    strcat (slots, data);
    free (data);
}

static void fill (struct job *job, enum slot slot, const char *text,
                  slot_f destroy)
{
    char *data = job_slot_make (job, slot, 2, destroy);

    assert_non_null (data);
    assert_int_equal (data[0], 0);
    strcpy (data, text);
    assert_ptr_equal (job_slot_make (job, slot, 2, destroy), data);
}

/* What parts keep about a job goes with the job, in the order of the slots.
 */
static void test_slots (void **state)
{
    struct world w;
    struct job *job;
    char *data;

    setup (&w);
    slots[0] = '\0';
    assert_non_null (job = see (&w, "a", 1, false));
    assert_null (job_slot (job, SLOT_WAITLIST));
    fill (job, SLOT_ANNOTATE, "z", destroy_last);
    fill (job, SLOT_WAITLIST, "a", destroy_first);
    assert_non_null (data = job_slot_take (job, SLOT_WAITLIST));
    free (data);
    assert_null (job_slot_take (job, SLOT_WAITLIST));
    job_slot_clear (job, SLOT_WAITLIST);
    assert_string_equal (slots, "");
    fill (job, SLOT_WAITLIST, "b", destroy_first);
    job_slot_clear (job, SLOT_WAITLIST);
    assert_string_equal (slots, "b");
    assert_non_null (job_slot (job, SLOT_LATE));
    job_slot_clear (job, SLOT_LATE);
    fill (job, SLOT_WAITLIST, "c", destroy_first);
    jobs_forget_workflow (job);
    assert_string_equal (slots, "b");
    turn (&w);
    assert_null (jobs_find (w.ctx.jobs, 77));
    assert_string_equal (slots, "bcz");
    teardown (&w);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_reads),
        cmocka_unit_test (test_writes),
        cmocka_unit_test (test_commands),
        cmocka_unit_test (test_late_result),
        cmocka_unit_test (test_backoff),
        cmocka_unit_test (test_replaced),
        cmocka_unit_test (test_doubted),
        cmocka_unit_test (test_label_changed),
        cmocka_unit_test (test_stray),
        cmocka_unit_test (test_slots),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of writeback.c: what is written when, and what comes together. The KVS is the
 * test: it takes records down as one line of text for each commit.
 */

#include "libdws/test/util.h"
#include "act/writeback.h"
#include "act/kvs.h"
#include "base/calls.h"
#include "base/timeline.h"
#include "tell/annotate.h"
#include "test/timers.h"

#define URI "interthread://writeback"
#define JOBS 100
#define HALF 5.                 // of what things are kept back for, see setup()

static struct world {
    flux_t *other;
    struct dws_ctx ctx;
    struct job jobs[JOBS];
    struct dws_job facts[JOBS];
    flux_watcher_t *timer;
    double now;
    char written[4096];
    char memos[256];
    json_t *kept;               // all of them
    int commits;
} w;

double monotonic_now (void)
{
    return w.now;
}

int kvs_put_timing (struct job *job, enum dws_state state, const char *elapsed)
{
    size_t len = strlen (w.written);

    snprintf (w.written + len, sizeof (w.written) - len, "%d:%s=%s ",
              (int)job->facts->id,
              dws_state_name (state), elapsed);
    return 0;
}

int kvs_put_workflow (struct job *job, const char *record)
{
    size_t len = strlen (w.written);

    snprintf (w.written + len, sizeof (w.written) - len, "%d%s ",
              (int)job->facts->id, record);
    return 0;
}

bool late_is (const struct job *job)
{
    return job->facts->phase == DWS_PHASE_GONE;
}

flux_future_t *kvs_wait (struct job *job)
{
    flux_future_t *f = flux_future_create (NULL, NULL);

    assert_non_null (f);
    flux_future_set_flux (f, w.ctx.h);
    flux_future_fulfill (f, NULL, NULL);
    strcat (w.written, "| ");
    w.commits++;
    return f;
}

void annotate_memos (struct job *job, json_t *memos, bool volat)
{
    const char *key;
    json_t *value;

    assert_false (volat);
    json_object_foreach (memos, key, value) {
        size_t len = strlen (w.memos);

        snprintf (w.memos + len, sizeof (w.memos) - len, "%d:%s=%s ",
                  (int)job->facts->id, key, json_string_value (value));
    }
    assert_int_equal (json_array_append_new (w.kept, memos), 0);
}

static void setup (void)
{
    memset (&w, 0, sizeof (w));
    timers_count = 0;
    w.now = 1000.;
    w.kept = json_array ();
    assert_non_null (w.other = flux_open (URI, 0));
    assert_non_null (w.ctx.h = flux_open (URI, 0));
    assert_non_null (w.ctx.calls = calls_create ());
    assert_non_null (w.ctx.writeback = writeback_create (&w.ctx));
    w.timer = timers[0].w;
    for (int i = 0; i < JOBS; i++) {
        w.jobs[i].ctx = &w.ctx;
        w.jobs[i].facts = &w.facts[i];
        w.facts[i].id = i;
    }
}

static void teardown (void)
{
    for (int i = 0; i < JOBS; i++)
        writeback_flush (&w.jobs[i]);
    writeback_destroy (w.ctx.writeback);
    calls_destroy (w.ctx.calls);
    json_decref (w.kept);
    flux_close (w.ctx.h);
    flux_close (w.other);
}

static void timing (int i, enum dws_state state, const char *elapsed)
{
    assert_int_equal (writeback_timing (&w.jobs[i], state, elapsed), 0);
}

static void assert_written (const char *want)
{
    assert_string_equal (w.written, want);
    w.written[0] = '\0';
}

static void assert_memos (const char *want)
{
    assert_string_equal (w.memos, want);
    w.memos[0] = '\0';
}

static void after (double seconds)
{
    w.now += seconds;
    timer_fire (w.timer, HALF);
}

/* All that is noted of a job until then comes in one commit; the newer takes the place of
 * the older.
 */
static void test_together (void **state)
{
    setup ();
    timing (1, DWS_STATE_SETUP, "3s");
    timing (1, DWS_STATE_PROPOSAL, "2s");
    assert_int_equal (writeback_workflow (&w.jobs[1], "{\"a\":1}"), 0);
    writeback_memo (&w.jobs[1], "rabbits", "r0");
    after (HALF - 1.);
    timing (1, DWS_STATE_SETUP, "4s");
    assert_int_equal (writeback_workflow (&w.jobs[1], "{\"a\":2}"), 0);
    writeback_memo (&w.jobs[1], "rabbits", "r1");
    assert_written ("");
    assert_memos ("");
    after (1.);
    assert_written ("1:Proposal=2s 1:Setup=4s 1{\"a\":2} | ");
    assert_memos ("1:rabbits=r1 ");
    assert_false (flux_watcher_is_active (w.timer));

    timing (1, DWS_STATE_DATAIN, "5s");
    after (HALF);
    assert_written ("1:DataIn=5s | ");
    teardown ();
}

/* Each goes by its own age, the oldest first, and none is kept back for longer than
 * twice that.
 */
static void test_age (void **state)
{
    setup ();
    timing (1, DWS_STATE_SETUP, "1s");
    w.now += 1.;
    timers[0].after = TIMER_NEVER;
    timing (2, DWS_STATE_SETUP, "1s");
    assert_true (timers[0].after == TIMER_NEVER);
    timers[0].after = HALF;
    w.now += HALF;
    timing (0, DWS_STATE_SETUP, "1s");
    timing (1, DWS_STATE_DATAIN, "1s");
    after (0.);
    assert_written ("1:Setup=1s 1:DataIn=1s | 2:Setup=1s | ");
    after (HALF);
    assert_written ("0:Setup=1s | ");
    teardown ();
}

/* What others wait for, or a job that goes, is not kept back, and others still are.
 */
static void test_now (void **state)
{
    flux_future_t *f;

    setup ();
    for (int i = 0; i < 4; i++)
        timing (i, DWS_STATE_SETUP, "1s");
    writeback_memo (&w.jobs[1], "k", "v");
    writeback_flush (&w.jobs[1]);
    assert_written ("1:Setup=1s | ");
    assert_memos ("1:k=v ");
    writeback_flush (&w.jobs[1]);
    assert_written ("");
    assert_non_null (f = writeback_commit (&w.jobs[3]));
    assert_written ("3:Setup=1s | ");
    flux_future_destroy (f);
    errno = 0;
    assert_null (writeback_commit (&w.jobs[3]));
    assert_int_equal (errno, EINVAL);
    timing (3, DWS_STATE_DATAIN, "2s");     // behind others once more
    writeback_flush (&w.jobs[0]);
    assert_written ("0:Setup=1s | ");
    after (HALF);
    assert_written ("2:Setup=1s | 3:DataIn=2s | ");
    teardown ();
}

/* Memos alone can be set before the rest, and there is no commit for them.
 */
static void test_memos (void **state)
{
    setup ();
    writeback_send_memos (&w.jobs[1]);
    writeback_memo (&w.jobs[1], "a", "1");
    writeback_memo (&w.jobs[1], "b", "2");
    timing (2, DWS_STATE_SETUP, "1s");
    writeback_memo (&w.jobs[2], "c", "3");
    writeback_send_memos (&w.jobs[2]);
    assert_memos ("2:c=3 ");
    writeback_send_memos (&w.jobs[2]);
    writeback_flush (&w.jobs[1]);
    assert_memos ("1:a=1 1:b=2 ");
    assert_int_equal (w.commits, 0);
    after (HALF);
    assert_written ("2:Setup=1s | ");
    assert_memos ("");
    writeback_memo (&w.jobs[3], "d", "4");
    w.facts[3].phase = DWS_PHASE_GONE;
    writeback_flush (&w.jobs[3]);        // nobody takes it
    assert_memos ("");
    teardown ();
}

/* A text that cannot be kept, with nothing else, is no commit.
 */
static void test_refused (void **state)
{
    setup ();
    errno = 0;
    assert_int_equal (writeback_workflow (&w.jobs[1], "[]"), -1);
    assert_int_equal (errno, EINVAL);
    writeback_flush (&w.jobs[1]);
    assert_int_equal (w.commits, 0);
    teardown ();
}

/* A job in the queue: its memos are set as those of others, its records come with what is
 * noted when it has its nodes, or after twelve halves at the latest.
 */
static void test_queued (void **state)
{
    setup ();
    w.facts[1].phase = DWS_PHASE_PENDING;
    w.facts[2].phase = DWS_PHASE_PENDING;
    timing (1, DWS_STATE_PROPOSAL, "1s");
    timing (2, DWS_STATE_PROPOSAL, "1s");
    writeback_memo (&w.jobs[1], "a", "1");
    after (HALF);
    assert_memos ("1:a=1 ");
    for (int looks = 1; looks < 10; looks++)
        after (HALF);
    assert_written ("");
    w.facts[2].phase = DWS_PHASE_PROLOG;
    timing (2, DWS_STATE_SETUP, "2s");
    after (HALF);
    assert_written ("1:Proposal=1s | 2:Proposal=1s 2:Setup=2s | ");
    assert_false (flux_watcher_is_active (w.timer));
    teardown ();
}

/* Messages come in between when many are due.
 */
static void test_many (void **state)
{
    setup ();
    for (int i = 0; i < JOBS; i++)
        timing (i, DWS_STATE_SETUP, "1s");
    after (HALF);
    assert_in_range (w.commits, 1, JOBS / 4);
    while (flux_watcher_is_active (w.timer)) {
        int before = w.commits;

        timer_fire (w.timer, 0.);
        assert_in_range (w.commits - before, 1, JOBS / 4);
    }
    assert_int_equal (w.commits, JOBS);
    teardown ();
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_together),
        cmocka_unit_test (test_age),
        cmocka_unit_test (test_now),
        cmocka_unit_test (test_memos),
        cmocka_unit_test (test_refused),
        cmocka_unit_test (test_queued),
        cmocka_unit_test (test_many),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of waitlist.c.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/test/util.h"
#include "facts/jobs.h"
#include "facts/waitlist.h"

#define JOBS 5

struct world {
    struct dws_ctx ctx;
    struct job jobs[JOBS];
    struct dws_job facts[JOBS];
    struct dws_workflow workflows[JOBS];
};

static struct world *current;
static char looked[64];         // who has looked again, in that order

/* What module.c does when a job has changed, and who is asked to decide.
 */
void jobs_changed (struct job *job)
{
    snprintf (looked + strlen (looked), sizeof (looked) - strlen (looked),
              "%d", (int)(job - current->jobs));
    waitlist_see_job (current->ctx.waitlist, job);
}

static void setup (struct world *w)
{
    memset (w, 0, sizeof (*w));
    current = w;
    looked[0] = '\0';
    assert_non_null (w->ctx.waitlist = waitlist_create ());
    for (int i = 0; i < JOBS; i++) {
        w->jobs[i].ctx = &w->ctx;
        w->jobs[i].facts = &w->facts[i];
        w->jobs[i].wf = &w->workflows[i];
        w->jobs[i].t_alloc = 100. + i;
        w->facts[i].id = 10 + i;
        w->facts[i].phase = DWS_PHASE_PROLOG;
        w->workflows[i].desired = DWS_STATE_PROPOSAL;
    }
}

static void teardown (struct world *w)
{
    for (int i = 0; i < JOBS; i++) {
        waitlist_leave (&w->jobs[i]);
        assert_null (w->facts[i].awaits);
    }
    waitlist_destroy (w->ctx.waitlist);
}

static void await (struct world *w, int i, const char *rabbits, bool queued)
{
    json_t *keys = J ("{'k': true}");
    json_t *r = J (rabbits);

    assert_int_equal (waitlist_wait (w->ctx.waitlist, &w->jobs[i], keys, r, queued,
                                     "k"), 0);
    assert_string_equal (w->facts[i].awaits, "k");
    json_decref (keys);
    json_decref (r);
}

static int add_before (struct job *other, json_t *wants, void *arg)
{
    char *buf = arg;

    assert_int_equal (json_object_size (json_object_get (wants, "a")), 1);
    sprintf (buf + strlen (buf), "%d", (int)(other - current->jobs));
    return 0;
}

static void assert_before (struct world *w, int i, const char *rabbits,
                           const char *want)
{
    json_t *r = J (rabbits);
    char buf[JOBS + 1] = "";

    assert_int_equal (waitlist_before (w->ctx.waitlist, &w->jobs[i], r, add_before, buf),
                      0);
    assert_string_equal (buf, want);
    json_decref (r);
}

static void assert_looked (const char *want)
{
    assert_string_equal (looked, want);
    looked[0] = '\0';
}

#define A "{'a': 1}"
#define AB "{'a': 2, 'b': 1}"
#define B "{'b': 1}"

/* Whoever has got its nodes first is first, whenever it has come here; of those at
 * the same time the one that was submitted first. So it is the same after a restart.
 */
static void test_order (void **state)
{
    struct world w;

    setup (&w);
    w.jobs[3].t_alloc = w.jobs[2].t_alloc;
    await (&w, 3, A, true);
    await (&w, 1, A, true);
    await (&w, 2, AB, true);
    assert_before (&w, 0, A, "");
    assert_before (&w, 1, A, "");
    assert_before (&w, 2, A, "1");
    assert_before (&w, 3, A, "12");
    assert_before (&w, 4, A, "123");
    assert_before (&w, 4, B, "2");
    assert_before (&w, 4, "{'c': 1}", "");
    await (&w, 1, A, true);             // keeps its place
    assert_before (&w, 4, A, "123");
    w.facts[0].phase = DWS_PHASE_DEPEND;        // has no nodes yet
    await (&w, 0, A, true);
    assert_before (&w, 0, A, "123");
    assert_before (&w, 4, A, "123");
    assert_looked ("");
    teardown (&w);
}

/* What may last for ever is waited for beside the queue.
 */
static void test_passed (void **state)
{
    struct world w;

    setup (&w);
    await (&w, 1, A, true);
    await (&w, 2, A, true);
    await (&w, 3, B, true);
    await (&w, 1, A, false);
    assert_looked ("12");
    assert_before (&w, 2, A, "");
    await (&w, 1, A, true);
    assert_looked ("");
    assert_before (&w, 2, A, "1");
    teardown (&w);
}

/* What is given back, or not waited for any more, is news for those that want it.
 */
static void test_wake (void **state)
{
    struct world w;
    json_t *rabbits = J (A);

    setup (&w);
    await (&w, 4, A, true);
    await (&w, 1, AB, true);
    await (&w, 2, A, false);
    await (&w, 3, B, true);
    waitlist_wake (w.ctx.waitlist, rabbits);
    assert_looked ("124");
    waitlist_leave (&w.jobs[1]);
    assert_looked ("234");
    waitlist_leave (&w.jobs[1]);
    waitlist_leave (&w.jobs[0]);
    assert_looked ("");
    assert_before (&w, 4, A, "");
    json_decref (rabbits);
    teardown (&w);
}

/* A job that ends does not wait, however it ends, nor one that has got its storage.
 */
static void test_over (void **state)
{
    struct world w;

    for (int how = 0; how < 8; how++) {
        setup (&w);
        await (&w, 1, A, true);
        await (&w, 2, A, true);
        waitlist_see_job (w.ctx.waitlist, &w.jobs[1]);
        assert_before (&w, 2, A, "1");
        switch (how) {
            case 0:
                w.facts[1].exception = true;
                break;
            case 1:
                w.facts[1].phase = DWS_PHASE_EPILOG;
                break;
            case 2:
                w.facts[1].abandoned = true;
                break;
            case 3:
                w.facts[1].refusal = "no";
                break;
            case 4:
                w.jobs[1].wf = NULL;
                break;
            case 5:
                w.workflows[1].deleting = true;
                break;
            case 6:
                w.workflows[1].servers_written = true;
                break;
            case 7:
                w.workflows[1].desired = DWS_STATE_TEARDOWN;
                break;
        }
        waitlist_see_job (w.ctx.waitlist, &w.jobs[1]);
        assert_looked ("2");
        assert_null (w.facts[1].awaits);
        assert_before (&w, 2, A, "");
        teardown (&w);
    }
}

/* Those that look again may have ended, all of them.
 */
static void test_all_over (void **state)
{
    struct world w;
    json_t *rabbits = J (A);

    setup (&w);
    for (int i = 0; i < JOBS; i++) {
        await (&w, i, A, true);
        w.facts[i].exception = i > 0;
    }
    waitlist_wake (w.ctx.waitlist, rabbits);
    for (int i = 1; i < JOBS; i++)
        assert_null (job_slot (&w.jobs[i], SLOT_WAITLIST));
    assert_non_null (job_slot (&w.jobs[0], SLOT_WAITLIST));
    json_decref (rabbits);
    teardown (&w);
    waitlist_destroy (NULL);
}

/* Room is given to the first that has its nodes, which is known before it has been
 * looked at. Who waits for what others have for themselves is passed.
 */
static void test_room (void **state)
{
    struct world w;

    setup (&w);
    assert_true (waitlist_room_before (&w.jobs[0], &w.jobs[1]));
    assert_false (waitlist_room_before (&w.jobs[1], &w.jobs[0]));
    assert_false (waitlist_room_before (&w.jobs[0], &w.jobs[0]));
    assert_int_equal (waitlist_wait_room (w.ctx.waitlist, &w.jobs[1], "room"), 0);
    assert_int_equal (waitlist_wait_room (w.ctx.waitlist, &w.jobs[0], "room"), 0);
    assert_string_equal (w.facts[0].awaits, "room");
    assert_before (&w, 2, A, "");
    assert_looked ("");
    // the first looks again; the next when that has left
    waitlist_wake_room (w.ctx.waitlist);
    assert_looked ("0");
    waitlist_leave (&w.jobs[0]);
    assert_looked ("1");
    // one that has storage, or has ended, or waits for something else
    w.jobs[0].claim.bytes = BYTES ("{'a': 1}");
    assert_false (waitlist_room_before (&w.jobs[0], &w.jobs[1]));
    dws_bytes_clear (&w.jobs[0].claim.bytes);
    w.facts[0].exception = true;
    assert_false (waitlist_room_before (&w.jobs[0], &w.jobs[1]));
    w.facts[0].exception = false;
    await (&w, 0, A, true);
    assert_false (waitlist_room_before (&w.jobs[0], &w.jobs[1]));
    waitlist_wake_room (w.ctx.waitlist);
    assert_looked ("1");
    teardown (&w);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_order),
        cmocka_unit_test (test_passed),
        cmocka_unit_test (test_wake),
        cmocka_unit_test (test_over),
        cmocka_unit_test (test_all_over),
        cmocka_unit_test (test_room),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

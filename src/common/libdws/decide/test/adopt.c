/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of adopt.c: workflows that flux-coral2 has made.
 */

#include "facts.h"

static struct facts stray (enum dws_phase phase, enum dws_state state)
{
    struct facts f = facts (phase, state, true);

    f.wf.stray = true;
    f.job.userid = 100;
    f.wf.userid = 100;
    return f;
}

/* Nothing but that is done about it, wherever the job and the workflow are.
 */
static void test_first (void **state)
{
    for (int phase = DWS_PHASE_DEPEND; phase < DWS_PHASE_GONE; phase++) {
        for (int to = DWS_STATE_NONE; to <= DWS_STATE_TEARDOWN; to++) {
            struct facts f = stray (phase, to);

            assert_true (dws_adopt_fits (&f.job, &f.wf));
            assert_string_equal (decide (&f, 2000.), "adopt");
            f.wf.status = DWS_STATUS_ERROR;
            f.wf.ready = false;
            f.wf.deleting = true;
            f.job.exception = true;
            assert_string_equal (decide (&f, 2000.), "adopt");
            f.job.busy = DWS_BUSY (DWS_ACT_ADOPT);
            assert_string_equal (decide (&f, 2000.), "");
        }
    }
}

/* It may be that of another job with this id.
 */
static void test_anothers (void **state)
{
    for (int phase = DWS_PHASE_DEPEND; phase <= DWS_PHASE_GONE; phase++) {
        struct facts f = stray (phase, DWS_STATE_PROPOSAL);

        f.job.recalled = true;
        f.job.remembered = true;
        assert_true (dws_adopt_fits (&f.job, &f.wf));
        f.wf.directives_hash = 1;
        assert_int_equal (dws_adopt_fits (&f.job, &f.wf),
                          phase > DWS_PHASE_PENDING);
        f.wf.directives_hash = 0;
        f.wf.userid = 101;
        assert_false (dws_adopt_fits (&f.job, &f.wf));
    }
}

/* What to do about it is known when it is known how the job has ended.
 */
static void test_gone (void **state)
{
    struct facts f = stray (DWS_PHASE_GONE, DWS_STATE_PRERUN);

    f.wf.userid = 7;
    assert_true (dws_adopt_fits (&f.job, &f.wf));
    assert_string_equal (decide (&f, 2000.), "recall");
    f.wf.userid = 100;
    f.job.recalled = true;
    assert_false (dws_adopt_fits (&f.job, &f.wf));
    f.job.remembered = true;
    assert_true (dws_adopt_fits (&f.job, &f.wf));
    assert_string_equal (decide (&f, 2000.), "adopt");
}

/* Computes that are written by none of them would mount nothing.
 */
static void test_computes (void **state)
{
    for (int to = DWS_STATE_PROPOSAL; to <= DWS_STATE_TEARDOWN; to++) {
        struct facts f = stray (DWS_PHASE_PROLOG, to);
        bool needed = to == DWS_STATE_SETUP || to == DWS_STATE_DATAIN;

        assert_int_equal (dws_adopt_needs_computes (&f.job, &f.wf), needed);
        f.job.hosts = NULL;
        assert_string_equal (decide (&f, 2000.), needed ? "hosts" : "adopt");
        f.job.exception = true;
        assert_string_equal (decide (&f, 2000.), "adopt");
        f.job.exception = false;
        f.job.phase = DWS_PHASE_EPILOG;
        assert_string_equal (decide (&f, 2000.), "adopt");
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_first),
        cmocka_unit_test (test_anothers),
        cmocka_unit_test (test_gone),
        cmocka_unit_test (test_computes),
    };

    return cmocka_run_group_tests_name ("adopt", tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of pace.c.
 */

#include "libdws/test/util.h"
#include "base/pace.h"

static void test_rate (void **state)
{
    struct pace *pace = pace_create (4., 100, 10.);
    int begun = 0;

    assert_non_null (pace);
    for (int i = 0; i < 64; i++)
        begun += pace_begin (pace, 100. + i / 64.);
    assert_int_equal (begun, 4);
    assert_true (pace_begin (pace, 101.));
    assert_false (pace_begin (pace, 101.125));
    pace_destroy (pace);
}

/* A server that does not answer is not asked any more.
 */
static void test_under_way (void **state)
{
    struct pace *pace = pace_create (4., 2, 10.);

    assert_true (pace_begin (pace, 100.));
    assert_true (pace_begin (pace, 101.));
    assert_false (pace_begin (pace, 200.));
    pace_end (pace, false, 201.);
    assert_true (pace_begin (pace, 201.));
    assert_false (pace_begin (pace, 202.));
    pace_reset (pace);
    assert_true (pace_begin (pace, 203.));
    pace_reset (pace);
    pace_end (pace, false, 203.);
    pace_destroy (pace);
}

static void test_refused (void **state)
{
    struct pace *pace = pace_create (4., 2, 10.);

    assert_true (pace_begin (pace, 100.));
    pace_end (pace, true, 101.);
    assert_false (pace_begin (pace, 110.));
    assert_true (pace_begin (pace, 111.));
    pace_end (pace, false, 111.);
    assert_true (pace_begin (pace, 112.));
    pace_destroy (pace);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_rate),
        cmocka_unit_test (test_under_way),
        cmocka_unit_test (test_refused),
    };

    return cmocka_run_group_tests_name ("pace", tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of timeline.c, with clocks that the test sets.
 */

#include <math.h>

#include "libdws/test/util.h"
#include "libdws/util/timeline.h"

#define NOON 1795435200.
#define HOUR 3600.

/* What the clocks say: the seconds that have passed, and how far the wall clock was
 * set forward or back.
 */
struct world {
    struct dws_timeline line;
    double passed;
    double set;
};

static bool look (struct world *w)
{
    return dws_timeline_look (&w->line, NOON + w->passed + w->set,
                              100. + w->passed);
}

static bool pass (struct world *w, double seconds)
{
    w->passed += seconds;
    return look (w);
}

static void begin (struct world *w)
{
    memset (w, 0, sizeof (*w));
    dws_timeline_init (&w->line, NOON, 100.);
}

static bool near (double a, double b)
{
    return fabs (a - b) < 1E-3;
}

static void test_steady (void **state)
{
    struct world w;

    begin (&w);
    assert_true (w.line.now == NOON);
    assert_false (pass (&w, 10.));
    assert_true (near (w.line.now, NOON + 10.));
    assert_true (near (dws_timeline_of (&w.line, NOON + 2.), NOON + 2.));
    assert_true (near (dws_timeline_of (&w.line, NOON - 2.), NOON - 2.));
    assert_true (near (dws_timeline_wall (&w.line, NOON + 2.), NOON + 2.));
    /* the clock of another host is ahead */
    assert_true (near (dws_timeline_of (&w.line, NOON + 99.), NOON + 10.));
    assert_true (dws_timeline_of (&w.line, 0.) == 0.);
    assert_true (dws_timeline_wall (&w.line, 0.) == 0.);
    /* it is slewed */
    w.set = 3.;
    assert_false (pass (&w, 10.));
    w.set = -3.;
    assert_false (pass (&w, 10.));
}

static void test_forward (void **state)
{
    struct world w;

    begin (&w);
    (void)pass (&w, 100.);
    w.set = HOUR;
    assert_true (pass (&w, 2.));
    assert_false (look (&w));
    assert_int_equal (w.line.count, 1);
    assert_true (near (w.line.now, NOON + 102.));
    /* of before it, and of after it */
    assert_true (near (dws_timeline_of (&w.line, NOON + 50.), NOON + 50.));
    assert_true (near (dws_timeline_of (&w.line, NOON + HOUR + 101.),
                       NOON + 101.));
    assert_true (near (dws_timeline_wall (&w.line, NOON + 50.), NOON + 50.));
    (void)pass (&w, 50.);
    assert_true (near (dws_timeline_wall (&w.line, NOON + 140.),
                       NOON + HOUR + 140.));
}

static void test_back (void **state)
{
    struct world w;

    begin (&w);
    (void)pass (&w, 100.);
    w.set = -HOUR;
    assert_true (pass (&w, 2.));
    assert_true (near (w.line.now, NOON + 102.));
    /* Nobody could have written this stamp since. */
    assert_true (near (dws_timeline_of (&w.line, NOON + 50.), NOON + 50.));
    /* This may be of either side: the later is taken. */
    assert_true (near (dws_timeline_of (&w.line, NOON - HOUR + 50.),
                       NOON + 50.));
    assert_true (near (dws_timeline_wall (&w.line, NOON + 50.), NOON + 50.));
    (void)pass (&w, 50.);
    assert_true (near (dws_timeline_wall (&w.line, NOON + 140.),
                       NOON - HOUR + 140.));
}

/* A process that starts anew knows of jumps that others have seen.
 */
static void restart (struct world *w, const char *then, const char *boot,
                     bool jumped)
{
    json_t *record = dws_timeline_record (&w->line, then);

    assert_non_null (record);
    dws_timeline_init (&w->line, NOON + w->passed + w->set, 100. + w->passed);
    assert_int_equal (dws_timeline_learn (&w->line, record, boot), jumped);
    json_decref (record);
}

static void test_restart (void **state)
{
    struct world w;
    double age;

    begin (&w);
    (void)pass (&w, 100.);
    w.set = HOUR;
    (void)pass (&w, 2.);
    restart (&w, "b", "b", false);
    age = w.line.now - dws_timeline_of (&w.line, NOON + 50.);
    assert_true (near (age, 52.));
    age = w.line.now - dws_timeline_of (&w.line, NOON + HOUR + 101.);
    assert_true (near (age, 1.));

    /* one while nobody looked */
    w.set = 2 * HOUR;
    w.passed += 10.;
    restart (&w, "b", "b", true);
    age = w.line.now - dws_timeline_of (&w.line, NOON + 50.);
    assert_true (near (age, 62.));
    age = w.line.now - dws_timeline_of (&w.line, NOON + HOUR + 101.);
    assert_true (near (age, 11.));

    /* of which nothing is known where the host was booted */
    w.set = 3 * HOUR;
    restart (&w, "b", "c", false);
    restart (&w, "", "", false);
}

static void test_malformed (void **state)
{
    static const char *const tab[] = {
        NULL, "null", "[]", "{}", "{'boot': 1}", "{'boot': 'b', 'ahead': 0}",
        "{'boot': 'x', 'ahead': 0, 'jumps': {}}",
        "{'boot': 'x', 'ahead': 0, 'jumps': [1, [1], ['a', 'b'], {}]}",
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct world w;
        json_t *record = J (tab[i]);

        begin (&w);
        assert_false (dws_timeline_learn (&w.line, record, "b"));
        assert_int_equal (w.line.count, 0);
        json_decref (record);
    }
}

/* Whatever the clock does: what has happened is never taken for older than it is, by
 * more than the slack; and where the clock was only set forward it is as old as it is.
 */
static void test_any_jumps (void **state)
{
    srand (1);
    for (int round = 0; round < 2000; round++) {
        bool back = round % 2;
        double stamps[60];
        double moments[60];
        struct world w;

        begin (&w);
        for (int i = 0; i < 60; i++) {
            if (rand () % 6 == 0) {
                (void)pass (&w, 1.);
                w.set += back && rand () % 2 ? -(10. + rand () % 7200)
                                             : 10. + rand () % 7200;
                (void)look (&w);
            }
            (void)pass (&w, 1. + rand () % 30);
            stamps[i] = NOON + w.passed + w.set;
            moments[i] = w.line.now;
            if (rand () % 20 == 0) {
                double before = w.line.now;

                restart (&w, "b", "b", false);
                for (int j = 0; j <= i; j++)
                    moments[j] += w.line.now - before;
            }
            for (int j = 0; j <= i && w.line.count < DWS_JUMPS_MAX; j++) {
                double t = dws_timeline_of (&w.line, stamps[j]);

                assert_true (t <= w.line.now + 1E-3);
                assert_true (t >= moments[j] - 1E-3);
                if (!back) {
                    assert_true (near (t, moments[j]));
                    assert_true (near (dws_timeline_wall (&w.line, t),
                                       stamps[j]));
                }
            }
        }
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_steady),
        cmocka_unit_test (test_forward),
        cmocka_unit_test (test_back),
        cmocka_unit_test (test_restart),
        cmocka_unit_test (test_malformed),
        cmocka_unit_test (test_any_jumps),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of movements.c.
 */

#include "libdws/facts/movements.h"
#include "libdws/test/util.h"

static void check (const char *text, int want)
{
    json_t *o = J (text);
    double bytes;

    assert_int_equal (dws_movements_progress (o, &bytes), want);
    json_decref (o);
}

static void test_nothing_moves (void **state)
{
    check ("null", -1);
    check ("[]", -1);
    check ("[{'status': {'state': 'Finished', 'status': 'Success'}},"
           " {'status': {'state': 'Finished', 'status': 'Failed'}}]", -1);
}

/* Each of these is further than the one before.
 */
static void test_each_step_counts (void **state)
{
    static const char *const steps[] = {
        "[{}, {}]",
        "[{'status': {'state': 'Starting'}}, {}]",
        "[{'status': {'state': 'Running',"
        "  'commandStatus': {'progress': 1}}}, {}]",
        "[{'status': {'state': 'Running',"
        "  'commandStatus': {'progress': 100}}}, {'status': null}]",
        "[{'status': {'state': 'Running',"
        "  'commandStatus': {'progress': 100}}},"
        " {'status': {'state': 'Running'}}]",
        "[{'status': {'state': 'Finished', 'status': 'Success'}},"
        " {'status': {'state': 'Running',"
        "  'commandStatus': {'progress': 1}}}]",
    };
    int last = -1;

    for (size_t i = 0; i < sizeof (steps) / sizeof (steps[0]); i++) {
        json_t *o = J (steps[i]);
        double bytes;
        int progress = dws_movements_progress (o, &bytes);

        assert_true (progress > last);
        last = progress;
        json_decref (o);
    }
}

static void test_bytes (void **state)
{
    json_t *o = J ("[{'status': {'state': 'Running', 'commandStatus': {"
                   "  'lastMessage': 'Copied 1.000 KiB (0%) in 1.0 secs"
                   " (1.000 KiB/s) 9 secs left ...'}}},"
                   " {'status': {'state': 'Finished', 'commandStatus': {"
                   "  'data': '2.000 KiB (2048 bytes)'}}}, {}]");
    double bytes = -1.;

    assert_int_equal (dws_movements_progress (o, &bytes), 102);
    assert_true (bytes == 3072.);
    json_decref (o);
}

static void test_nonsense (void **state)
{
    check ("[{'status': {'commandStatus': {'progress': -5}}}]", 1);
    check ("[{'status': {'commandStatus': {'progress': 5000000000}}}]", 101);
    check ("[{'status': {'commandStatus': 7, 'state': 7}}]", 1);
    check ("[7]", 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_nothing_moves),
        cmocka_unit_test (test_each_step_counts),
        cmocka_unit_test (test_bytes),
        cmocka_unit_test (test_nonsense),
    };

    return cmocka_run_group_tests_name ("movements", tests, NULL, NULL);
}

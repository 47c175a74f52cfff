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

#define MOVEMENT(name, state, status, teardown) \
    "{'metadata': {'namespace': 'rabbit0', 'name': '" name "'," \
    "  'labels': {'nnf.cray.hpe.com/teardown_state': '" teardown "'}}," \
    " 'status': {'state': '" state "', 'status': '" status "'}}"

/* Those of a stage-out alone: what users have begun is theirs.
 */
static void test_failed (void **state)
{
    json_t *movements = J ("[" MOVEMENT ("a", "Finished", "Failed", "DataOut") ","
                           MOVEMENT ("b", "Finished", "Success", "DataOut") ","
                           MOVEMENT ("c", "Running", "", "DataOut") ","
                           MOVEMENT ("d", "Finished", "Failed", "PostRun") ","
                           MOVEMENT ("e", "Finished", "Invalid", "DataOut") ","
                           "{'status': {'state': 'Finished'}}, 7]");
    json_t *want = J ("[{'namespace': 'rabbit0', 'name': 'a'},"
                      " {'namespace': 'rabbit0', 'name': 'e'}]");
    json_t *failed = dws_movements_failed (movements);

    assert_true (json_equal (failed, want));
    json_decref (failed);
    json_decref (want);
    json_decref (movements);
    failed = dws_movements_failed (NULL);
    assert_int_equal (json_array_size (failed), 0);
    json_decref (failed);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_nothing_moves),
        cmocka_unit_test (test_each_step_counts),
        cmocka_unit_test (test_bytes),
        cmocka_unit_test (test_nonsense),
        cmocka_unit_test (test_failed),
    };

    return cmocka_run_group_tests_name ("movements", tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of progress.c.
 */

#include "libdws/facts/progress.h"
#include "libdws/test/util.h"

#define MOUNT(name, node, state, ready) \
    "{'metadata': {'name': 'default-fluxjob-1-0-" name "'}," \
    " 'spec': {'node': '" node "'}, 'status': {'mounts':" \
    " [{'state': '" state "', 'ready': " ready "}]}}"

static void test_mounts (void **state)
{
    json_t *o = J ("[" MOUNT ("computes", "node0", "mounted", "true") ","
                   MOUNT ("computes", "node1", "mounted", "false") ","
                   MOUNT ("computes", "node2", "unmounted", "true") ","
                   MOUNT ("servers", "rabbit0", "mounted", "true") "]");
    struct dws_progress p = { 0 };

    assert_int_equal (dws_progress_mounts (o, DWS_STATE_PRERUN, &p), 0);
    assert_int_equal (p.state, DWS_STATE_PRERUN);
    assert_int_equal (p.hosts, 3);
    assert_int_equal (p.hosts_done, 1);
    assert_int_equal (dws_progress_mounts (o, DWS_STATE_POSTRUN, &p), 0);
    assert_int_equal (p.state, DWS_STATE_POSTRUN);
    assert_int_equal (p.hosts_done, 1);
    json_decref (o);
    o = J ("[]");
    assert_int_equal (dws_progress_mounts (o, DWS_STATE_PRERUN, &p), 0);
    assert_int_equal (p.hosts, 0);
    json_decref (o);
}

#define MOVEMENT(initiator, status) \
    "{'metadata': {'name': 'fluxjob-1-2-0', 'labels':" \
    " {'dm.cray.hpe.com/initiator': '" initiator "'}}," \
    " 'status': {" status "}}"

static void test_movements (void **state)
{
    json_t *o = J ("["
        MOVEMENT ("copy_in", "'state': 'Finished', 'status': 'Success',"
                             " 'commandStatus': {'files': 7,"
                             " 'rate': '9 GB/s'}") ","
        MOVEMENT ("copy_in", "'state': 'Running', 'commandStatus':"
                             " {'progress': 20, 'files': 3,"
                             " 'rate': '1.5 GiB/s'}") ","
        MOVEMENT ("copy_in", "'state': 'Starting'") ","
        MOVEMENT ("node0", "'state': 'Running'") ","
        MOVEMENT ("copy_out", "'state': 'Running', 'commandStatus':"
                              " {'progress': 250}") ", 5, {}]");
    struct dws_progress p;

    dws_progress_movements (o, DWS_STATE_DATAIN, &p);
    assert_int_equal (p.state, DWS_STATE_DATAIN);
    assert_int_equal (p.movements, 3);
    assert_int_equal (p.movements_done, 1);
    assert_int_equal ((int)p.percent, 40);
    assert_int_equal ((int)p.files, 10);
    assert_true (p.rate == 1.5 * 1024 * 1024 * 1024);
    assert_string_equal (p.failure, "");
    dws_progress_movements (o, DWS_STATE_DATAOUT, &p);
    assert_int_equal (p.movements, 1);
    assert_int_equal ((int)p.percent, 100);
    json_decref (o);
    dws_progress_movements (NULL, DWS_STATE_DATAIN, &p);
    assert_int_equal (p.movements, 0);
}

#define COPIED(bytes, percent, rate, left) \
    "'commandStatus': {'progress': " percent ", 'lastMessage': 'Copied " bytes \
    " (" percent "%) in 3.139 secs (" rate ") " left "\\n'}"

/* Each counts by its bytes, and the last one to end by its time, if all say how much
 * and how long.
 */
static void test_estimate (void **state)
{
    json_t *o = J ("["
        MOVEMENT ("copy_in", "'state': 'Finished', 'status': 'Success',"
                             " 'commandStatus': {"
                             "  'data': '30.000 GB (30000000000 bytes)',"
                             "  'rate': '9 GB/s (1 bytes in 2 seconds)'}") ","
        MOVEMENT ("copy_in", "'state': 'Running', "
                  COPIED ("1.000 GB", "10", "1.000 GB/s", "9 secs left ...")) ","
        MOVEMENT ("copy_in", "'state': 'Running', "
                  COPIED ("5.000 GB", "50", "250.000 MB/s", "20 secs left ..."))
        "]");
    struct dws_progress p;

    dws_progress_movements (o, DWS_STATE_DATAIN, &p);
    assert_int_equal ((int)p.percent, 72);
    assert_true (p.rate == 1.25e9);
    assert_true (p.left == 20.);
    /* one that has not begun: nobody knows how much it is */
    json_array_append_new (o, J (MOVEMENT ("copy_in", "")));
    dws_progress_movements (o, DWS_STATE_DATAIN, &p);
    assert_int_equal ((int)p.percent, 40);
    assert_true (p.left == 0.);
    json_decref (o);
    o = J ("[" MOVEMENT ("copy_in", "'state': 'Running', "
                         COPIED ("inf GB", "50", "nan GB/s", "inf secs left"))
           "]");
    dws_progress_movements (o, DWS_STATE_DATAIN, &p);
    assert_int_equal ((int)p.percent, 50);
    assert_true (p.rate == 0.);
    assert_true (p.left == 0.);
    json_decref (o);
}

static void check_failure (const char *text, const char *want)
{
    json_t *o = J (text);
    struct dws_progress p;

    dws_progress_movements (o, DWS_STATE_DATAOUT, &p);
    assert_int_equal (p.movements_done, json_array_size (o));
    assert_string_equal (p.failure, want);
    json_decref (o);
}

/* The movement's own words, or those of the program that it ran.
 */
static void test_failure (void **state)
{
    check_failure ("[" MOVEMENT ("copy_out", "'state': 'Finished',"
                                 " 'status': 'Failed', 'message': 'no space'")
                   "," MOVEMENT ("copy_out", "'state': 'Finished',"
                                 " 'status': 'Failed', 'message': 'later'")
                   "]", "Failed (fluxjob-1-2-0): no space");
    check_failure ("[" MOVEMENT ("copy_out", "'state': 'Finished',"
                                 " 'status': 'Invalid', 'commandStatus':"
                                 " {'lastMessage': 'dcp: no such file'}")
                   "]", "Invalid (fluxjob-1-2-0): dcp: no such file");
    check_failure ("[" MOVEMENT ("copy_out", "'state': 'Finished',"
                                 " 'status': 'Cancelled'")
                   "]", "Cancelled (fluxjob-1-2-0)");
}

/* The rate of one movement that is on its way.
 */
static void check_rate (const char *text, double want)
{
    struct dws_progress p = { 0 };
    json_t *o = json_pack ("[{s:{s:{s:s}} s:{s:s s:{s:s}}}]",
                           "metadata",
                             "labels",
                               "dm.cray.hpe.com/initiator", "copy_in",
                           "status",
                             "state", "Running",
                             "commandStatus",
                               "rate", text);

    assert_non_null (o);
    dws_progress_movements (o, DWS_STATE_DATAIN, &p);
    assert_int_equal (p.movements, 1);
    assert_true (p.rate == want);
    json_decref (o);
}

static void test_rate (void **state)
{
    static const struct {
        const char *s;
        double rate;
    } tab[] = {
        { "1.5 GiB/s", 1.5 * 1024 * 1024 * 1024 },
        { "2KB/s", 2000. },
        { "10 B/s", 10. },
        { "3 MB/s", 3e6 },
        { "", 0. }, { "fast", 0. }, { "-1 B/s", 0. }, { "5", 0. },
        { "5 Gi", 0. }, { "nan B/s", 0. },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++)
        check_rate (tab[i].s, tab[i].rate);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_mounts),
        cmocka_unit_test (test_movements),
        cmocka_unit_test (test_estimate),
        cmocka_unit_test (test_failure),
        cmocka_unit_test (test_rate),
    };

    return cmocka_run_group_tests_name ("progress", tests, NULL, NULL);
}

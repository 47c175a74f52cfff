/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of notice.c.
 */

#include "libdws/tell/notice.h"
#include "libdws/test/util.h"

#define NOW 1795435200.
#define DIRECTIVES \
    "['#DW jobdw type=xfs capacity=1GiB name=a'," \
    " '#DW copy_out source=$DW_JOB_a/x destination=/lus/x profile=p'," \
    " '#DW copy_in source=/lus/y destination=$DW_JOB_a/y'," \
    " '#DW copy_out source=$DW_JOB_a/z destination=/lus/z']"

static void test_stage_out (void **state)
{
    struct dws_job job = { .id = 42, .userid = 1001,
                           .directives = D (DIRECTIVES) };
    struct dws_bytes bytes = BYTES ("{'r1': 5, 'r0': 3}");
    json_t *o = dws_notice_stage_out (&job, "f42", &bytes, "no \"room\"\n",
                                      NOW + 3600., NOW);

    assert_json (o, "{'id': 'stage-out-failed/f42/1795435200.000',"
                 " 'event': 'stage-out-failed', 't': 1795435200.0,"
                 " 'userid': 1001, 'jobid': 42, 'job': 'f42',"
                 " 'what': ['$DW_JOB_a/x -> /lus/x', '$DW_JOB_a/z -> /lus/z'],"
                 " 'where': 'r[0-1]', 'until': 1795438800.0,"
                 " 'message': 'The data of job f42 was not staged out: no"
                 " \\\"room\\\"\\n. It is kept until 2026-11-23 13:00:00 UTC; to have"
                 " it tried again: flux rabbit retry f42'}");
    json_decref (o);
    dws_directives_destroy (job.directives);
    dws_bytes_clear (&bytes);
}

/* All that is known is that it is lost.
 */
static void test_lost (void **state)
{
    struct dws_job job = { .id = 42, .userid = 1001 };
    json_t *o = dws_notice_stage_out (&job, "f42", NULL, "gone", 0., NOW);

    assert_json (o, "{'id': 'stage-out-lost/f42/1795435200.000',"
                 " 'event': 'stage-out-lost', 't': 1795435200.0,"
                 " 'userid': 1001, 'jobid': 42, 'job': 'f42', 'what': [],"
                 " 'message': 'The data of job f42 was not staged out, and is"
                 " lost: gone'}");
    json_decref (o);
}

static void check_file_system (const char *event, double expires,
                               const char *says)
{
    struct dws_bytes bytes = BYTES ("{'r0': 3}");
    json_t *o = dws_notice_file_system (event, "keep", 7, &bytes, expires, NOW);
    json_t *message = json_object_get (o, "message");

    assert_string_equal (json_string_value (json_object_get (o, "event")), event);
    assert_string_equal (json_string_value (json_object_get (o, "where")), "r0");
    assert_int_equal (json_integer_value (json_object_get (o, "userid")), 7);
    assert_true (json_number_value (json_object_get (o, "until")) == expires);
    assert_non_null (strstr (json_string_value (message), says));
    json_decref (o);
    dws_bytes_clear (&bytes);
}

static void test_file_system (void **state)
{
    json_t *o;

    check_file_system (DWS_NOTICE_EXPIRING, NOW + 60.,
                       "keep expires at 2026-11-23 12:01:00 UTC. Then");
    check_file_system (DWS_NOTICE_EXPIRING, NOW - 60., "keep has expired. As soon");
    check_file_system (DWS_NOTICE_DESTROYED, 0., "has expired and is destroyed.");
    o = dws_notice_file_system (DWS_NOTICE_DESTROYED, "keep", -1, NULL, 0., NOW);
    assert_json (o, "{'id': 'file-system-destroyed/keep/1795435200.000',"
                 " 'event': 'file-system-destroyed', 't': 1795435200.0,"
                 " 'what': ['keep'], 'message':"
                 " 'The persistent file system keep has expired and is"
                 " destroyed.'}");
    json_decref (o);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_stage_out),
        cmocka_unit_test (test_lost),
        cmocka_unit_test (test_file_system),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

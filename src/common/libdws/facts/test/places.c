/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of places.c.
 */

#include "libdws/facts/mounts.h"
#include "libdws/facts/places.h"
#include "libdws/test/util.h"

static void check_env (const char *before, const char *directives,
                       const char *places, const char *want)
{
    json_t *env = J (before);
    struct dws_directives *dirs = D (directives);
    json_t *known = J (places);

    assert_int_equal (dws_places_complete (env, dirs, known), 0);
    assert_json (env, want);
    json_decref (known);
    dws_directives_destroy (dirs);
    json_decref (env);
}

/* What NNF has set stays, and what it would have set is added.
 */
static void test_complete (void **state)
{
    static const char *const two =
        "['#DW jobdw type=xfs capacity=1GiB name=one',"
        " '#DW copy_out source=$DW_JOB_one destination=/x',"
        " '#DW jobdw type=gfs2 capacity=1GiB name=the-other',"
        " '#DW persistentdw name=kept']";

    check_env ("{'DW_JOB_one': '/a', 'DW_JOBS': 'one:/a', 'DW_JOB_XFS': '/a'}",
               two, "{'0': '/z', '2': '/b', '3': '/c'}",
               "{'DW_JOB_one': '/a', 'DW_JOB_XFS': '/a',"
               " 'DW_JOBS': 'one:/a,the-other:/b',"
               " 'DW_JOB_the_other': '/b', 'DW_JOB_GFS2': '/b',"
               " 'DW_PERSISTENT_kept': '/c', 'DW_PERSISTENTS': 'kept:/c'}");
    check_env ("{}", two, "{'1': '/b'}", "{}");
    check_env ("{'DW_JOB_XFS': '/a'}",
               "['#DW jobdw type=xfs capacity=1GiB name=two', 5, '#DW jobdw']",
               "{'0': '/b', '1': '/c', '2': '/d'}",
               "{'DW_JOB_XFS': '/a', 'DW_JOB_two': '/b', 'DW_JOBS': 'two:/b'}");
}

static void test_places (void **state)
{
    json_t *mounts = J (
        "[{'metadata': {'name': 'default-fluxjob-1-0-computes'},"
        "  'spec': {'node': 'node0', 'mounts': [{'mountPath': '/a'}]}},"
        " {'metadata': {'name': 'default-fluxjob-1-12-computes'},"
        "  'spec': {'node': 'node0', 'mounts': [{'mountPath': '/b'}]}},"
        " {'metadata': {'name': 'default-fluxjob-1-1-servers'},"
        "  'spec': {'node': 'rabbit0', 'mounts': [{'mountPath': '/c'}]}},"
        " {'metadata': {'name': 'odd-computes'},"
        "  'spec': {'node': 'node0', 'mounts': [{'mountPath': '/d'}]}},"
        " {'metadata': {'name': 'default-fluxjob-1-2-computes'},"
        "  'spec': {'node': 'node0', 'mounts': []}}, 5]");
    json_t *places = dws_mounts_places (mounts);

    assert_json (places, "{'0': '/a', '12': '/b'}");
    json_decref (places);
    json_decref (mounts);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_complete),
        cmocka_unit_test (test_places),
    };

    return cmocka_run_group_tests_name ("places", tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of variables.c.
 */

#include "libdws/config/variables.h"
#include "libdws/test/util.h"

static void test_variables (void **state)
{
    static const char *const yes[] = {
        "DW_JOB_scratch", "DW_JOBS", "NNF_CONTAINER_PORTS", "DW_PERSISTENT_",
        "DW_DATA_PATH", "SITE_X",
    };
    static const char *const no[] = {
        "PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "DW_WORKFLOW_TOKEN",
        "PYTHONSTARTUP", "BASH_ENV", "BASH_FUNC_x%%", "IFS", "HOME",
        "FLUX_URI", "DW_A=B", "DW-X", "", "1X", "MANPATH",
    };
    json_t *usual = J ("['DW_*', 'NNF_*', 'SITE_*']");
    json_t *all = J ("['*']");

    for (size_t i = 0; i < sizeof (yes) / sizeof (yes[0]); i++)
        assert_true (dws_variable_may_pass (usual, yes[i]));
    for (size_t i = 0; i < sizeof (no) / sizeof (no[0]); i++)
        assert_false (dws_variable_may_pass (all, no[i]));
    assert_true (dws_variable_may_pass (all, "EXTRA"));
    assert_false (dws_variable_may_pass (usual, "EXTRA"));
    assert_false (dws_variable_may_pass (usual, "XDW_A"));
    json_decref (all);
    json_decref (usual);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_variables),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

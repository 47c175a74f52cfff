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
        "DW_DATA_PATH", "NNF_CONTAINER_HOSTNAMES", "NNF_of_tomorrow",
    };
    static const char *const no[] = {
        "PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONSTARTUP", "BASH_ENV",
        "IFS", "HOME", "FLUX_URI", "MANPATH", "EXTRA", "XDW_A", "DW", "NNF",
    };
    static const char *const never[] = {
        "DW_WORKFLOW_TOKEN", "DW_FUNC_x%%", "DW_A=B", "DW_-X", "", "1X",
    };

    for (size_t i = 0; i < sizeof (yes) / sizeof (yes[0]); i++)
        assert_true (dws_variable_may_pass (yes[i]));
    for (size_t i = 0; i < sizeof (no) / sizeof (no[0]); i++)
        assert_false (dws_variable_may_pass (no[i]));
    for (size_t i = 0; i < sizeof (never) / sizeof (never[0]); i++)
        assert_false (dws_variable_may_pass (never[i]));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_variables),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

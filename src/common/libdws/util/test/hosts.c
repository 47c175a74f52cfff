/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of hosts.c.
 */

#include "libdws/test/util.h"
#include "libdws/util/hosts.h"

static void check_free (char *s, const char *want)
{
    assert_non_null (s);
    assert_string_equal (s, want);
    free (s);
}

static void test_hosts (void **state)
{
    dws_error_t error;

    check_free (dws_hosts_join ("node[1-2]", "node[0,2]", NULL), "node[0-2]");
    check_free (dws_hosts_join (NULL, NULL, NULL), "");
    check_free (dws_hosts_join ("", "node0", NULL), "node0");
    check_free (dws_hosts_subtract ("node[0-3]", "node[1-2]", NULL),
                "node[0,3]");
    check_free (dws_hosts_subtract ("node0", NULL, NULL), "node0");
    check_free (dws_hosts_subtract ("node0", "node0", NULL), "");
    assert_null (dws_hosts_join ("node[", NULL, &error));
    assert_int_equal (errno, EINVAL);
    assert_null (dws_hosts_subtract ("node0", "node[", &error));
    assert_int_equal (errno, EINVAL);
    assert_int_equal (dws_hosts_count ("node[0-3]"), 4);
    assert_int_equal (dws_hosts_count (""), 0);
    assert_int_equal (dws_hosts_count (NULL), 0);
    assert_int_equal (dws_hosts_count ("node["), 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_hosts),
    };

    return cmocka_run_group_tests_name ("hosts", tests, NULL, NULL);
}

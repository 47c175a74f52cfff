/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of nodemap.c.
 */

#include "libdws/graph/nodemap.h"
#include "libdws/test/util.h"

static void test_table (void **state)
{
    static const struct {
        const char *hosts;
        const char *want;
    } tab[] = {
        { "a[1-3]", "r1=a[1-2];r2=a3" },
        { "a3,a2", "r2=a3;r1=a2" },
        { "a2,a3,a1", "r1=a[2,1];r2=a3" },
        { "nowhere,a1", "r1=a1" },
        { "nowhere", "" },
        { "", "" },
    };
    json_t *mapping = J (
        "{'computes': {'a1': 'r1', 'a2': 'r1', 'a3': 'r2'},"
        " 'rabbits': {'r1': {'capacity': 1, 'hostlist': 'a[1-2]'},"
        "             'r2': {'capacity': 1, 'hostlist': 'a3'},"
        "             'r3': {'capacity': 1, 'hostlist': ''}}}");
    struct dws_topology *topo = dws_topology_create (mapping, NULL);
    dws_error_t error;

    assert_non_null (topo);
    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        char *s = dws_nodemap (tab[i].hosts, topo, &error);

        assert_non_null (s);
        assert_string_equal (s, tab[i].want);
        free (s);
    }
    assert_null (dws_nodemap ("a[", topo, &error));
    assert_int_equal (errno, EINVAL);
    assert_contains (error.text, "malformed hostlist");
    dws_topology_destroy (topo);
    json_decref (mapping);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_table),
    };

    return cmocka_run_group_tests_name ("nodemap", tests, NULL, NULL);
}

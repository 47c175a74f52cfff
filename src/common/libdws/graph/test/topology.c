/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of topology.c and of the table below it.
 */

#include "libdws/graph/topology.h"
#include "libdws/test/util.h"
#include "libdws/util/strtab.h"

static const char *good =
    "{'computes': {'a1': 'r1', 'a2': 'r1', 'b3': 'r2'},"
    " 'rabbits': {'r1': {'capacity': 1000, 'hostlist': 'a[1-2]'},"
    "             'r2': {'capacity': 2000, 'hostlist': 'b3'},"
    "             'r3': {'capacity': 0, 'hostlist': ''}}}";

static void test_lookup (void **state)
{
    json_t *o = J (good);
    dws_error_t e;
    struct dws_topology *topo = dws_topology_create (o, &e);

    assert_non_null (topo);
    json_decref (o);
    assert_int_equal (dws_topology_count (topo), 3);
    assert_string_equal (dws_topology_rabbit (topo, "a1"), "r1");
    assert_string_equal (dws_topology_rabbit (topo, "a2"), "r1");
    assert_string_equal (dws_topology_rabbit (topo, "b3"), "r2");
    assert_int_equal (dws_topology_find (topo, "r2"), 1);
    assert_int_equal (dws_topology_find_host (topo, "b3"), 1);
    assert_int_equal (dws_topology_host_count (topo), 3);
    assert_string_equal (dws_topology_name (topo, 2), "r3");
    assert_string_equal (dws_topology_hostlist (topo, 0), "a[1-2]");
    assert_string_equal (dws_topology_hostlist (topo, 2), "");
    assert_int_equal (dws_topology_capacity (topo, 1), 2000);

    errno = 0;
    assert_null (dws_topology_rabbit (topo, "r1"));
    assert_int_equal (errno, ENOENT);
    assert_int_equal (dws_topology_find (topo, "a1"), -1);
    assert_null (dws_topology_name (topo, 3));
    assert_null (dws_topology_hostlist (topo, -1));
    assert_int_equal (dws_topology_capacity (topo, 3), -1);
    dws_topology_destroy (topo);
    dws_topology_destroy (NULL);
}

static void test_bad (void **state)
{
    static const struct {
        const char *mapping;
        const char *text;
    } table[] = {
        { "[]", "'computes' and 'rabbits'" },
        { "{'computes': {}}", "'computes' and 'rabbits'" },
        { "{'computes': [], 'rabbits': {}}", "'computes' and 'rabbits'" },
        { "{'computes': {}, 'rabbits': {'r': {'capacity': 1}}}",
          "rabbits.r must have" },
        { "{'computes': {}, 'rabbits': {'r': {'capacity': -1,"
          " 'hostlist': ''}}}",
          "rabbits.r.capacity" },
        { "{'computes': {}, 'rabbits': {'r': {'capacity': 1,"
          " 'hostlist': 'a[1'}}}",
          "rabbits.r.hostlist" },
        { "{'computes': {'a': 'r'}, 'rabbits': {"
          " 'r': {'capacity': 1, 'hostlist': 'a'},"
          " 's': {'capacity': 1, 'hostlist': 'a'}}}",
          "host a is listed under r and s" },
        { "{'computes': {'a': 1}, 'rabbits': {}}", "computes.a" },
        { "{'computes': {'a': 'r'}, 'rabbits': {}}",
          "rabbit r is not among" },
        { "{'computes': {'a': 'r'}, 'rabbits': {"
          " 'r': {'capacity': 1, 'hostlist': ''}}}",
          "hostlist of r does not name" },
        { "{'computes': {'a': 'r'}, 'rabbits': {"
          " 'r': {'capacity': 1, 'hostlist': ''},"
          " 's': {'capacity': 1, 'hostlist': 'a'}}}",
          "hostlist of r does not name" },
        { "{'computes': {}, 'rabbits': {"
          " 'r': {'capacity': 1, 'hostlist': 'a'}}}",
          "host a of rabbit r is missing" },
        { "{'computes': {}, 'rabbits': {"
          " 'r': {'capacity': 1, 'hostlist': 'a[0-1000000]'}}}",
          "more than 65536 hosts" },
    };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *o = J (table[i].mapping);
        dws_error_t e = { "" };

        errno = 0;
        assert_null (dws_topology_create (o, &e));
        assert_int_equal (errno, EINVAL);
        assert_contains (e.text, table[i].text);
        json_decref (o);
    }
    assert_null (dws_topology_create (NULL, NULL));
}

/* Enough keys that the table must grow many times over.
 */
static void test_strtab (void **state)
{
    enum { N = 5000 };
    struct strtab *tab = strtab_create (0);
    static char keys[N][16];

    assert_non_null (tab);
    for (int i = 0; i < N; i++) {
        snprintf (keys[i], sizeof (keys[i]), "node%d", i);
        assert_int_equal (strtab_insert (tab, keys[i], i), 0);
    }
    for (int i = 0; i < N; i++)
        assert_int_equal (strtab_find (tab, keys[i]), i);
    errno = 0;
    assert_int_equal (strtab_insert (tab, "node7", 1), -1);
    assert_int_equal (errno, EEXIST);
    assert_int_equal (strtab_find (tab, "node7"), 7);
    assert_int_equal (strtab_find (tab, "node5000"), -1);
    assert_int_equal (errno, ENOENT);
    strtab_destroy (tab);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_lookup),
        cmocka_unit_test (test_bad),
        cmocka_unit_test (test_strtab),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

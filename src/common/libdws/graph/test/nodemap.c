/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of nodemap.c.
 */

#include "libdws/graph/nodemap.h"
#include "libdws/test/util.h"

#define COMPUTES(...) \
    "{'status': {'access': {'computes': [" __VA_ARGS__ "]}}}"
#define NAME(name) "{'name': '" name "', 'status': 'Ready'}"

static struct dws_topology *create_topology (void)
{
    json_t *mapping = J (
        "{'computes': {'a1': 'r1', 'a2': 'r1', 'a3': 'r2', 'a4': 'r1'},"
        " 'rabbits': {'r1': {'capacity': 1, 'hostlist': 'a[1-2,4]'},"
        "             'r2': {'capacity': 1, 'hostlist': 'a3'},"
        "             'r3': {'capacity': 1, 'hostlist': ''}}}");
    struct dws_topology *topo = dws_topology_create (mapping, NULL);

    assert_non_null (topo);
    json_decref (mapping);
    return topo;
}

static void check_map (const struct dws_topology *topo, const char *hosts,
                       const struct dws_nodemap_opts *opts, const char *want)
{
    dws_error_t error;
    char *s = dws_nodemap (hosts, topo, opts, &error);

    assert_non_null (s);
    assert_string_equal (s, want);
    free (s);
}

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
    struct dws_topology *topo = create_topology ();
    struct dws_nodemap_opts opts = { 0 };
    dws_error_t error;

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++)
        check_map (topo, tab[i].hosts, &opts, tab[i].want);
    assert_null (dws_nodemap ("a[", topo, &opts, &error));
    assert_int_equal (errno, EINVAL);
    assert_contains (error.text, "malformed hostlist 'a['");
    opts.left_out = "b[";
    assert_null (dws_nodemap ("a1", topo, &opts, &error));
    assert_int_equal (errno, EINVAL);
    assert_contains (error.text, "malformed hostlist 'b['");
    dws_topology_destroy (topo);
}

static void test_order_of_storage (void **state)
{
    static const struct {
        const char *storages;
        const char *hosts;
        const char *want;
    } tab[] = {
        { "{'r1': " COMPUTES (NAME ("a4") "," NAME ("a2") "," NAME ("a1")) "}",
          "a[1-4]", "r1=a[4,2,1];r2=a3" },
        { "{'r1': " COMPUTES (NAME ("a4") "," NAME ("a2") "," NAME ("a1")) "}",
          "a1,a4", "r1=a[4,1]" },
        { "{'r1': " COMPUTES (NAME ("a2") "," NAME ("a2") "," NAME ("b1")) "}",
          "a[1-2]", "r1=a[2,1]" },
        { "{'r1': " COMPUTES ("{}, {'name': 3}, 7," NAME ("a2")) "}",
          "a[1-2]", "r1=a[2,1]" },
        { "{'r1': {'status': {'access': {}}}, 'r2': {}}",
          "a[1-3]", "r1=a[1-2];r2=a3" },
        { "{'r1': {'status': {'access': {'computes': 7}}}}",
          "a[1-2]", "r1=a[1-2]" },
    };
    struct dws_topology *topo = create_topology ();

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct dws_nodemap_opts opts = { .storages = J (tab[i].storages) };

        check_map (topo, tab[i].hosts, &opts, tab[i].want);
        json_decref (opts.storages);
    }
    dws_topology_destroy (topo);
}

static void test_left_out (void **state)
{
    static const struct {
        const char *left_out;
        const char *want;
    } tab[] = {
        { "", "r1=a[1-2,4];r2=a3" },
        { "a3", "r1=a[1-2,4]" },
        { "a[1-2,4]", "r2=a3" },
        { "a1", "r1=a[1-2,4];r2=a3" },
        { "a[1-4]", "" },
    };
    struct dws_topology *topo = create_topology ();

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct dws_nodemap_opts opts = { .left_out = tab[i].left_out };

        check_map (topo, "a[1-4]", &opts, tab[i].want);
    }
    dws_topology_destroy (topo);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_table),
        cmocka_unit_test (test_order_of_storage),
        cmocka_unit_test (test_left_out),
    };

    return cmocka_run_group_tests_name ("nodemap", tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of mounts.c.
 */

#include "libdws/mounts.h"
#include "util.h"

#define MOUNT(name, node, status) \
    "{'metadata': {'name': 'default-fluxjob-1-0-" name "'}," \
    " 'spec': {'node': '" node "'}" status "}"
#define STATUS(state, ready) \
    ", 'status': {'mounts': [{'state': '" state "', 'ready': " ready "}]}"

static void check_mounts (const char *text, const char *state,
                          const char *want)
{
    json_t *o = J (text);
    char *got = dws_mounts_lagging (o, state, NULL);

    assert_string_equal (got, want);
    free (got);
    json_decref (o);
}

static void test_mounts (void **state)
{
    static const char *const three =
        "[" MOUNT ("computes", "node0", STATUS ("mounted", "true")) ","
        MOUNT ("computes", "node1", STATUS ("mounted", "false")) ","
        MOUNT ("computes", "node2", STATUS ("unmounted", "true")) "]";

    check_mounts ("[]", "mounted", "");
    check_mounts (three, "mounted", "node[1-2]");
    check_mounts (three, "unmounted", "node[0-1]");
    /* what says nothing has not arrived, what is on a rabbit is no node */
    check_mounts ("[" MOUNT ("computes", "node0", "") ","
                  MOUNT ("computes", "node1", ", 'status': {'mounts': []}") ","
                  MOUNT ("servers", "rabbit0", "") ", 5, {}]",
                  "mounted", "node[0-1]");
    /* two file systems on one node */
    check_mounts ("[" MOUNT ("computes", "node0", STATUS ("mounted", "true"))
                  "," MOUNT ("computes", "node0",
                             STATUS ("mounted", "false")) "]",
                  "mounted", "node0");
}

#define SERVERS(label, status) \
    "{'spec': {'allocationSets': [{'label': '" label "', 'storage':" \
    " [{'name': 'rabbit0'}, {'name': 'rabbit1'}]}]}" status "}"

static void test_servers (void **state)
{
    json_t *mapping = J ("{'computes': {'node0': 'rabbit0', 'node1':"
                         " 'rabbit0', 'node2': 'rabbit1'}, 'rabbits':"
                         " {'rabbit0': {'capacity': 1, 'hostlist':"
                         " 'node[0-1]'}, 'rabbit1': {'capacity': 1,"
                         " 'hostlist': 'node2'}}}");
    struct dws_topology *topo = dws_topology_create (mapping, NULL);
    static const struct {
        const char *servers;
        const char *lagging;
        const char *unready;
        const char *allocated;
        bool shared;
    } tab[] = {
        { "[]", "", "", "", false },
        { "[" SERVERS ("xfs", "") "]", "node[0-2]", "rabbit[0-1]", "", false },
        { "[" SERVERS ("xfs", ", 'status': {'allocationSets': [{'storage':"
                       " {'rabbit0': {'ready': true, 'allocationSize': 5},"
                       " 'rabbit1': {'ready': false, 'allocationSize': 0}}}]}")
          "]", "node2", "rabbit1", "rabbit0", false },
        { "[" SERVERS ("ost", ", 'status': {'allocationSets': [{'storage':"
                       " {'rabbit0': {'ready': true, 'allocationSize': 5},"
                       " 'rabbit1': {'ready': true, 'allocationSize': 5}}}]}")
          "]", "", "", "rabbit[0-1]", true },
    };

    assert_non_null (topo);
    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        json_t *o = J (tab[i].servers);
        bool shared;
        char *s = dws_servers_lagging (o, "node[0-2]", topo, &shared, NULL);
        assert_string_equal (s, tab[i].lagging);
        assert_int_equal (shared, tab[i].shared);
        free (s);
        s = dws_servers_unready (o, NULL);
        assert_string_equal (s, tab[i].unready);
        free (s);
        s = dws_servers_allocated (o, NULL);
        assert_string_equal (s, tab[i].allocated);
        free (s);
        json_decref (o);
    }
    errno = 0;
    bool shared;
    assert_null (dws_servers_lagging (NULL, "node[0-", topo, &shared, NULL));
    assert_int_equal (errno, EINVAL);
    dws_topology_destroy (topo);
    json_decref (mapping);
}

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
        cmocka_unit_test (test_mounts),
        cmocka_unit_test (test_servers),
        cmocka_unit_test (test_hosts),
    };

    return cmocka_run_group_tests_name ("mounts", tests, NULL, NULL);
}

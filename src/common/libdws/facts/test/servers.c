/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of servers.c.
 */

#include "libdws/facts/servers.h"
#include "libdws/test/util.h"

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

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_servers),
    };

    return cmocka_run_group_tests_name ("servers", tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of location.c.
 */

#include <stdbool.h>

#include "libdws/storage/data_first.h"
#include "libdws/storage/location.h"
#include "libdws/storage/test/with.h"
#include "libdws/test/util.h"

#define ACCESS(type, priority) \
    "{'type': '" type "', 'priority': '" priority "'}"
#define LOCATION(servers, set, access) \
    LOCATION_IN ("default", servers, set, access)
#define LOCATION_IN(namespace, servers, set, access) \
    "{'access': [" access "], 'reference': {'kind': 'Servers'," \
    " 'name': '" servers "', 'namespace': '" namespace "'," \
    " 'fieldPath': 'servers.spec.allocationSets[" #set "]'}}"
#define PERSISTENT(locations) \
    "{'metadata': {'name': 'w-0'}, 'status': {'ready': true," \
    " 'compute': {'constraints': {'location': [" locations "]}}}}"
#define JOBDW(locations) \
    "{'metadata': {'name': 'w-1'}, 'status': {'ready': true," \
    " 'storage': {'reference': {'name': 'own', 'namespace': 'default'}," \
    " 'allocationSets': []}," \
    " 'compute': {'constraints': {'location': [" locations "]}}}}"

#define PHYSICAL ACCESS ("physical", "mandatory")
#define NETWORK ACCESS ("network", "mandatory")
#define RATHER ACCESS ("physical", "bestEffort")

/* p1 lies on r1 and r2; the sets of p2 on r2 and r3, and r3 alone. In another namespace
 * p2 and own lie on r3.
 */
static const char *servers_text =
    "[{'metadata': {'name': 'p2', 'namespace': 'other'}, 'spec':"
    "  {'allocationSets': [{'storage': [{'name': 'r3'}]}]}},"
    " {'metadata': {'name': 'own', 'namespace': 'other'}, 'spec':"
    "  {'allocationSets': [{'storage': [{'name': 'r3'}]}]}},"
    " {'metadata': {'name': 'p1', 'namespace': 'default'}, 'spec':"
    "  {'allocationSets': [{'storage': [{'name': 'r1'}, {'name': 'r2'}]}]}},"
    " {'metadata': {'name': 'p2'}, 'spec': {'allocationSets': ["
    "  {'storage': [{'name': 'r2'}, {'name': 'r3'}, {'name': 'gone'}]},"
    "  {'storage': [{'name': 'r3'}]}]}},"
    " {'metadata': {'name': 'empty'}}]";

static const char *mapping_text =
    "{'computes': {'a1': 'r1', 'a2': 'r1', 'a3': 'r2', 'b9': 'r3'},"
    " 'rabbits': {'r1': {'capacity': 1, 'hostlist': 'a[1-2]'},"
    "             'r2': {'capacity': 1, 'hostlist': 'a3'},"
    "             'r3': {'capacity': 1, 'hostlist': 'b9'}}}";

static const struct {
    const char *breakdowns;
    int errnum;
    const char *want;         // the constraint, or part of the message
    const char *read;         // the Servers to read
} table[] = {
    { "[]", 0, "null", "[]" },
    { "[{'status': {'ready': true}}]", 0, "null", "[]" },
    // made for the job, or reached over the network, or only preferred
    { "[" JOBDW (LOCATION ("own", 0, PHYSICAL)) "]", 0, "null", "[]" },
    { "[" PERSISTENT (LOCATION ("p1", 0, NETWORK)) "]", 0, "null", "[]" },
    { "[" PERSISTENT (LOCATION ("p1", 0, NETWORK ", " RATHER)) "]", 0,
      "null", "[]" },
    // r1 and r2
    { "[" PERSISTENT (LOCATION ("p1", 0, NETWORK ", " PHYSICAL)) "]", 0,
      "{'hostlist': ['a[1-3]']}",
      "[{'name': 'p1', 'namespace': 'default'}]" },
    // a rabbit that left the machine does not matter
    { "[" PERSISTENT (LOCATION ("p2", 0, PHYSICAL)) "]", 0,
      "{'hostlist': ['a3,b9']}",
      "[{'name': 'p2', 'namespace': 'default'}]" },
    // one name in two namespaces
    { "[" JOBDW (LOCATION_IN ("other", "own", 0, PHYSICAL)) "]", 0,
      "{'hostlist': ['b9']}", "[{'name': 'own', 'namespace': 'other'}]" },
    { "[" PERSISTENT (LOCATION ("p2", 0, PHYSICAL) ", "
                      LOCATION_IN ("other", "p2", 0, PHYSICAL)) "]", 0,
      "{'hostlist': ['b9']}",
      "[{'name': 'p2', 'namespace': 'default'},"
      " {'name': 'p2', 'namespace': 'other'}]" },
    // both sets: r2, r3 and r3
    { "[" PERSISTENT (LOCATION ("p2", 0, PHYSICAL) ", "
                      LOCATION ("p2", 1, PHYSICAL)) "]", 0,
      "{'hostlist': ['b9']}", "[{'name': 'p2', 'namespace': 'default'}]" },
    // two of them: r1, r2 and r2, r3
    { "[" PERSISTENT (LOCATION ("p1", 0, PHYSICAL)) ", "
      PERSISTENT (LOCATION ("p2", 0, PHYSICAL)) ", "
      JOBDW (LOCATION ("own", 0, PHYSICAL)) "]", 0,
      "{'hostlist': ['a3']}",
      "[{'name': 'p1', 'namespace': 'default'},"
      " {'name': 'p2', 'namespace': 'default'}]" },
    // r1, r2 and r3
    { "[" PERSISTENT (LOCATION ("p1", 0, PHYSICAL) ", "
                      LOCATION ("p2", 1, PHYSICAL)) "]",
      ENOSPC, "no compute node", NULL },
    { "[" PERSISTENT (LOCATION ("p9", 0, PHYSICAL)) "]",
      EINVAL, "Servers p9 does not exist", NULL },
    { "[" PERSISTENT (LOCATION ("p1", 1, PHYSICAL)) "]",
      EINVAL, "Servers p1 has no allocation set 1", NULL },
    { "[" PERSISTENT (LOCATION ("empty", 0, PHYSICAL)) "]",
      EINVAL, "Servers empty has no allocation set 0", NULL },
    { "[" PERSISTENT (LOCATION ("p1", x, PHYSICAL)) "]",
      EINVAL, "w-0: malformed location", NULL },
    { "[" PERSISTENT (LOCATION ("p1", 0x, PHYSICAL)) "]",
      EINVAL, "w-0: malformed location", NULL },
    { "[" PERSISTENT ("{}") "]", EINVAL, "w-0: malformed location", NULL },
    { "[{'metadata': {'name': 'w-0'}}]", EAGAIN, "not ready", NULL },
};

static void test_table (void **state)
{
    json_t *mapping = J (mapping_text);
    json_t *servers = J (servers_text);
    struct dws_topology *topo = dws_topology_create (mapping, NULL);

    assert_non_null (topo);
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *breakdowns = J (table[i].breakdowns);
        dws_error_t e = { "" };
        json_t *o;

        errno = 0;
        o = WITH_BREAKDOWNS (breakdowns, &e,
                             dws_location_constraint (bd, servers, topo,
                                                      INT32_MAX, &e));
        if (table[i].errnum) {
            assert_null (o);
            assert_int_equal (errno, table[i].errnum);
            assert_contains (e.text, table[i].want);
        }
        else {
            if (!o)
                fail_msg ("row %zu: %s", i, e.text);
            assert_json (o, table[i].want);
            json_decref (o);
            o = WITH_BREAKDOWNS (breakdowns, &e, dws_location_servers (bd));
            assert_json (o, table[i].read);
        }
        json_decref (o);
        json_decref (breakdowns);
    }
    dws_topology_destroy (topo);
    json_decref (servers);
    json_decref (mapping);
}

/* Lustre is what its sets are named after, other types are the label.
 */
static void test_network (void **state)
{
    static const struct {
        const char *label;
        bool restricts;
    } tab[] = {
        { "ost", false },
        { "mgt", false },
        { "mdt", false },
        { "mgtmdt", false },
        { "gfs2", true },
        { "xfs", true },
        { "raw", true },
        { "else", true },
    };
    json_t *mapping = J (mapping_text);
    json_t *breakdowns = J ("[" PERSISTENT (LOCATION ("p1", 0, PHYSICAL)) "]");
    struct dws_topology *topo = dws_topology_create (mapping, NULL);

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        json_t *servers = json_pack ("[{s:{s:s} s:{s:[{s:s s:[{s:s}]}]}}]",
                                     "metadata", "name", "p1",
                                     "spec", "allocationSets",
                                       "label", tab[i].label,
                                       "storage", "name", "r2");
        json_t *o = WITH_BREAKDOWNS (breakdowns, NULL,
                                     dws_location_constraint (bd, servers,
                                                              topo, 2, NULL));

        assert_non_null (servers);
        assert_json (o, tab[i].restricts ? "{'hostlist': ['a3']}" : "null");
        json_decref (o);
        json_decref (servers);
    }
    dws_topology_destroy (topo);
    json_decref (breakdowns);
    json_decref (mapping);
}

/* A set with so many allocations on r1, which a[1-2] hang on, and on r2, of a3.
 */
static json_t *pack_servers (const char *name, const char *label, int count1,
                             int count2)
{
    return json_pack ("[{s:{s:s} s:{s:[{s:s s:[{s:s s:i} {s:s s:i}]}]}}]",
                      "metadata", "name", name,
                      "spec",
                        "allocationSets",
                          "label", label,
                          "storage",
                            "name", "r1", "allocationCount", count1,
                            "name", "r2", "allocationCount", count2);
}

/* Of a rabbit with N allocations N nodes can mount, if it is not Lustre.
 */
static void test_allocations (void **state)
{
    static const struct {
        const char *label;
        int count1;
        int count2;
        int nodes;
        const char *want;
    } tab[] = {
        { "xfs", 2, 1, 3, "{'hostlist': ['a[1-3]']}" },
        { "xfs", 1, 1, 1, "{'hostlist': ['a[1-3]']}" },
        { "xfs", 1, 1, 2, "{'hostlist': ['a[1,3]']}" },
        { "gfs2", 1, 1, 2, "{'hostlist': ['a[1,3]']}" },
        { "raw", 0, 1, 1, "{'hostlist': ['a3']}" },
        { "ost", 1, 1, 3, "null" },
        { "xfs", 1, 1, INT32_MAX, "{'hostlist': ['a[1,3]']}" },
        { "gfs2", 1, 1, 3, NULL },
        { "xfs", -5, 1, 2, NULL },
    };
    json_t *mapping = J (mapping_text);
    struct dws_topology *topo = dws_topology_create (mapping, NULL);
    json_t *breakdowns = J ("[" PERSISTENT (LOCATION ("p", 0, PHYSICAL)) "]");

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        json_t *servers = pack_servers ("p", tab[i].label, tab[i].count1,
                                        tab[i].count2);
        dws_error_t e = { "" };
        json_t *o = WITH_BREAKDOWNS (breakdowns, &e,
                                     dws_location_constraint (bd, servers,
                                                              topo,
                                                              tab[i].nodes,
                                                              &e));

        if (tab[i].want)
            assert_json (o, tab[i].want);
        else {
            assert_null (o);
            assert_int_equal (errno, ENOSPC);
            assert_contains (e.text, "can mount it, the job has");
        }
        json_decref (o);
        json_decref (servers);
    }
    json_decref (breakdowns);
    dws_topology_destroy (topo);
    json_decref (mapping);
}

/* Storage that was made before the job has nodes restricts them as any other does.
 */
static void test_first (void **state)
{
    static const struct {
        const char *label;
        const char *want;
    } tab[] = {
        { "xfs", "{'hostlist': ['a[2-3]']}" },
        { "gfs2", "{'hostlist': ['a[2-3]']}" },
        { "else", "{'hostlist': ['a[1-3]']}" },
        { "ost", "null" },
        { "mdt", "null" },
        { "mgt", "null" },
        { "mgtmdt", "null" },
    };
    json_t *mapping = J (mapping_text);
    struct dws_topology *topo = dws_topology_create (mapping, NULL);
    json_t *breakdowns = J ("[" JOBDW (LOCATION ("own", 0, PHYSICAL)) "]");
    json_t *goodness = json_pack ("{s:i s:i s:i s:i}",
                                  "a1", DWS_POOL_DOWN,
                                  "a2", DWS_POOL_IDLE,
                                  "a3", DWS_POOL_IDLE,
                                  "b9", DWS_POOL_IDLE);

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        json_t *servers = pack_servers ("own", tab[i].label, 1, 1);
        json_t *o = WITH_BREAKDOWNS (breakdowns, NULL,
                                     dws_location_data_first (bd, servers, topo,
                                                              goodness, 2, NULL));

        assert_json (o, tab[i].want);
        json_decref (o);
        json_decref (servers);
    }
    json_decref (goodness);
    json_decref (breakdowns);
    dws_topology_destroy (topo);
    json_decref (mapping);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_table),
        cmocka_unit_test (test_network),
        cmocka_unit_test (test_allocations),
        cmocka_unit_test (test_first),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

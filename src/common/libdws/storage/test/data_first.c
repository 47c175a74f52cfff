/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of data_first.c and pool.c, and of dws_location_data_first().
 */

#include "libdws/directive/command.h"
#include "libdws/storage/data_first.h"
#include "libdws/storage/location.h"
#include "libdws/storage/test/with.h"
#include "libdws/test/util.h"

/* Three rabbits of 100 GiB with three nodes each, which have ranks 0 to 8.
 */
static const char *mapping_text =
    "{'computes': {'a1': 'r1', 'a2': 'r1', 'a3': 'r1', 'b1': 'r2',"
    "              'b2': 'r2', 'b3': 'r2', 'c1': 'r3', 'c2': 'r3', 'c3': 'r3'},"
    " 'rabbits': {'r1': {'capacity': 107374182400, 'hostlist': 'a[1-3]'},"
    "             'r2': {'capacity': 107374182400, 'hostlist': 'b[1-3]'},"
    "             'r3': {'capacity': 107374182400, 'hostlist': 'c[1-3]'}}}";

#define STORAGE(name) \
    "{'metadata': {'name': '" name "'}, 'spec': {'state': 'Enabled'}," \
    " 'status': {'capacity': 107374182400, 'status': 'Ready'}}"

/* a1 is down; a2, b1 and b2 are busy.
 */
static const char *status_text =
    "{'all': {'version': 1, 'execution': {"
    "  'R_lite': [{'rank': '0-8', 'children': {'core': '0-3'}}],"
    "  'nodelist': ['a[1-3],b[1-3],c[1-3]'],"
    "  'properties': {'pbatch': '0-5', 'pdebug': '6-8'}}},"
    " 'allocated': {'version': 1, 'execution': {"
    "  'R_lite': [], 'nodelist': ['a2,b[1-2]']}},"
    " 'down': {'version': 1, 'execution': {"
    "  'R_lite': [], 'nodelist': ['a1']}}}";

struct world {
    struct dws_topology *topo;
    struct dws_pool *pool;
};

static int setup (void **state)
{
    static struct world w;
    json_t *mapping = J (mapping_text);
    json_t *status = J (status_text);

    w.topo = dws_topology_create (mapping, NULL);
    w.pool = dws_pool_create (status, NULL);
    json_decref (mapping);
    json_decref (status);
    *state = &w;
    return w.topo && w.pool ? 0 : -1;
}

static int teardown (void **state)
{
    struct world *w = *state;

    dws_topology_destroy (w->topo);
    dws_pool_destroy (w->pool);
    return 0;
}

static const struct {
    const char *constraint;
    const char *allowed;
    const char *want;           // NULL: it cannot be read
} nodes[] = {
    { "null", "null", "{'a1': 0, 'a2': 1, 'a3': 2, 'b1': 1, 'b2': 1, 'b3': 2,"
      " 'c1': 2, 'c2': 2, 'c3': 2}" },
    { "{}", "{'hostlist': ['a1,c3']}", "{'a1': 0, 'c3': 2}" },
    { "{'properties': ['pdebug']}", "null", "{'c1': 2, 'c2': 2, 'c3': 2}" },
    { "{'properties': ['^pdebug', 'pbatch']}", "{'hostlist': ['a[2-3],c1']}",
      "{'a2': 1, 'a3': 2}" },
    { "{'properties': ['nosuch']}", "null", "{}" },
    { "{'ranks': ['1-2', '8']}", "null", "{'a2': 1, 'a3': 2, 'c3': 2}" },
    { "{'and': [{'properties': ['pbatch']}, {'not': [{'hostlist':"
      " ['a[1-3]', 'b1']}]}]}", "null", "{'b2': 1, 'b3': 2}" },
    { "{'or': [{'hostlist': ['c3']}, {'ranks': ['0']}]}", "null",
      "{'a1': 0, 'c3': 2}" },
    { "{'and': [{'or': []}, {'ranks': ['0']}]}", "null", "{'a1': 0}" },
    { "{'hostlist': ['a[']}", "null", NULL },
    { "{'hostlist': 'a1'}", "null", NULL },
    { "{'ranks': [1]}", "null", NULL },
    { "{'properties': [7]}", "null", NULL },
    { "{'not': [{'xor': []}]}", "null", NULL },
    { "{'ranks': ['0'], 'hostlist': ['a1']}", "null", NULL },
    { "[]", "null", NULL },
};

static void test_pool_nodes (void **state)
{
    struct world *w = *state;

    for (size_t i = 0; i < sizeof (nodes) / sizeof (nodes[0]); i++) {
        json_t *constraint = J (nodes[i].constraint);
        json_t *allowed = J (nodes[i].allowed);
        json_t *o = dws_pool_nodes (w->pool, constraint, allowed, NULL);

        if (nodes[i].want)
            assert_json (o, nodes[i].want);
        else
            assert_null (o);
        json_decref (o);
        json_decref (constraint);
        json_decref (allowed);
    }
}

/* Constraints are not followed to any depth.
 */
static void test_deep (void **state)
{
    struct world *w = *state;
    json_t *o = J ("{'ranks': ['0']}");

    for (int i = 0; i < 100; i++)
        o = json_pack ("{s:[o]}", "not", o);
    assert_null (dws_pool_nodes (w->pool, o, NULL, NULL));
    json_decref (o);
}

static void test_bad_status (void **state)
{
    json_t *o = J ("{'all': {'execution': {}}}");

    assert_null (dws_pool_create (o, NULL));
    json_decref (o);
    o = J (status_text);
    json_object_set_new (o, "down",
                         J ("{'execution': {'nodelist': ['a[']}}"));
    assert_null (dws_pool_create (o, NULL));
    json_decref (o);
}

#define SET(strategy, label, gib) \
    "{'allocationStrategy': 'Allocate" strategy "', 'label': '" label "'," \
    " 'minimumCapacity': " gib ", 'constraints': {}}"

#define BREAKDOWN(sets) \
    "[{'metadata': {'name': 'w-0'}, 'status': {'ready': true, 'storage': {" \
    " 'reference': {'name': 'own', 'namespace': 'default'}," \
    " 'allocationSets': [" sets "]}, 'compute': {'constraints': {'location': [" \
    "  {'access': [{'type': 'physical', 'priority': 'mandatory'}]," \
    "   'reference': {'kind': 'Servers', 'name': 'own'," \
    "   'namespace': 'default'," \
    "   'fieldPath': 'servers.spec.allocationSets[0]'}}]}}}}]"

#define XFS20 SET ("PerCompute", "xfs", "21474836480")
#define XFS40 SET ("PerCompute", "xfs", "42949672960")
#define OST SET ("AcrossServers", "ost", "214748364800")

static const struct {
    const char *breakdowns;
    const char *constraint;
    int nodes;
    const char *used;
    const char *want;           // or what the message has
    int errnum;
} choices[] = {
    // on one rabbit, with most idle nodes; names decide at last
    { BREAKDOWN (XFS20), "null", 1, "{}", "{'r1': 1}", 0 },
    { BREAKDOWN (XFS20), "null", 2, "{}", "{'r3': 2}", 0 },
    { BREAKDOWN (XFS20), "null", 3, "{}", "{'r3': 3}", 0 },
    // one with more room, where as many are idle
    { BREAKDOWN (XFS20), "null", 1, "{'r1': 1, 'r3': 2}", "{'r2': 1}", 0 },
    // one that is full, or nearly
    { BREAKDOWN (XFS20), "null", 2, "{'r3': 80000000000}", "{'r1': 2}", 0 },
    // a node that is down does not count
    { BREAKDOWN (XFS20), "{'hostlist': ['a[1-3]']}", 2, "{}", "{'r1': 2}", 0 },
    { BREAKDOWN (XFS20), "{'hostlist': ['a[1-3]']}", 3, "{}",
      "the job needs 3 nodes with a rabbit, and 2 that it may have are up",
      ENOSPC },
    // on several, the best of them to the full
    { BREAKDOWN (XFS20), "null", 5, "{}", "{'r3': 3, 'r1': 2}", 0 },
    { BREAKDOWN (XFS20), "null", 8, "{}", "{'r3': 3, 'r2': 3, 'r1': 2}", 0 },
    // 40 GiB fit twice into 100
    { BREAKDOWN (XFS40), "null", 3, "{}", "{'r3': 2, 'r1': 1}", 0 },
    { BREAKDOWN (XFS40), "null", 7, "{}",
      "rabbits have room for the storage of 6 nodes, the job needs it for 7",
      ENOSPC },
    // what may lie anywhere is bound to nothing, and in nobody's way
    { BREAKDOWN (OST), "null", 2, "{}", "{}", 0 },
    { BREAKDOWN (XFS20 ", " OST), "null", 2, "{}", "{'r3': 2}", 0 },
};

static void test_choose (void **state)
{
    struct world *w = *state;
    json_t *storages = J ("[" STORAGE ("r1") ", " STORAGE ("r2") ", "
                          STORAGE ("r3") "]");

    for (size_t i = 0; i < sizeof (choices) / sizeof (choices[0]); i++) {
        json_t *breakdowns = J (choices[i].breakdowns);
        json_t *constraint = J (choices[i].constraint);
        json_t *good = dws_pool_nodes (w->pool, constraint, NULL, NULL);
        struct dws_bytes used = BYTES (choices[i].used);
        struct dws_allocation_opts opts = {
            .storages = storages,
            .used = &used,
        };
        dws_error_t e = { "" };
        json_t *o;

        errno = 0;
        o = WITH_BREAKDOWNS (breakdowns, &e,
                             dws_first_nodes (bd, good, choices[i].nodes,
                                              w->topo, &opts, &e));
        if (choices[i].errnum) {
            assert_null (o);
            assert_int_equal (errno, choices[i].errnum);
            assert_non_null (strstr (e.text, choices[i].want));
        }
        else
            assert_json (o, choices[i].want);
        json_decref (o);
        dws_bytes_clear (&used);
        json_decref (good);
        json_decref (constraint);
        json_decref (breakdowns);
    }
    json_decref (storages);
}

static const struct {
    const char *storage;
    int nodes;
    const char *want;
} locations[] = {
    // the whole job on one rabbit: any of its nodes
    { "[{'name': 'r2', 'allocationCount': 2}]", 2, "{'hostlist': ['b[1-3]']}" },
    // as many as can mount, the best that there are
    { "[{'name': 'r3', 'allocationCount': 3},"
      " {'name': 'r2', 'allocationCount': 1}]", 4,
      "{'hostlist': ['b3,c[1-3]']}" },
    { "[{'name': 'r3', 'allocationCount': 3},"
      " {'name': 'r1', 'allocationCount': 2}]", 5,
      "{'hostlist': ['a[2-3],c[1-3]']}" },
};

static void test_location (void **state)
{
    struct world *w = *state;
    json_t *breakdowns = J (BREAKDOWN (XFS20));
    json_t *good = dws_pool_nodes (w->pool, NULL, NULL, NULL);
    json_t *own;

    for (size_t i = 0; i < sizeof (locations) / sizeof (locations[0]); i++) {
        json_t *servers = json_pack ("[{s:{s:s s:s} s:{s:[{s:s s:o}]}}]",
                                     "metadata", "name", "own",
                                     "namespace", "default",
                                     "spec", "allocationSets", "label", "xfs",
                                     "storage", J (locations[i].storage));
        json_t *o = WITH_BREAKDOWNS (breakdowns, NULL,
                                     dws_location_data_first (bd, servers, w->topo,
                                                              good,
                                                              locations[i].nodes,
                                                              NULL));

        assert_json (o, locations[i].want);
        json_decref (o);
        json_decref (servers);
    }
    own = WITH_BREAKDOWNS (breakdowns, NULL, dws_location_own (bd));
    assert_json (own, "[{'name': 'own', 'namespace': 'default'}]");
    json_decref (own);
    json_decref (good);
    json_decref (breakdowns);
}

/* Who may have data before nodes. NULL: this job may.
 */
static void test_fault (void **state)
{
    static const struct {
        unsigned int commands;
        const char *resources;
        const char *fault;
    } tab[] = {
        { DWS_COMMAND_JOBDW, "[{'type': 'node', 'count': 2}]", NULL },
        { DWS_COMMAND_JOBDW | DWS_COMMAND_COPY_IN | DWS_COMMAND_COPY_OUT,
          "[{'type': 'slot', 'count': 2, 'with': ["
          "{'type': 'node', 'count': 1}, {'type': 'ssd', 'count': 5}]}]", NULL },
        { DWS_COMMAND_PERSISTENTDW, "[{'type': 'node', 'count': 2}]",
          "there is no jobdw directive" },
        { DWS_COMMAND_JOBDW | DWS_COMMAND_CONTAINER,
          "[{'type': 'node', 'count': 2}]", "only jobdw, copy_in and copy_out" },
        { DWS_COMMAND_JOBDW, "[{'type': 'core', 'count': 2}]",
          "must ask for a number of nodes" },
        { DWS_COMMAND_JOBDW, NULL, "must ask for a number of nodes" },
        { DWS_COMMAND_JOBDW, "[{'type': 'chassis', 'count': 1, 'with': ["
          "{'type': 'node', 'count': 2}]}]", "cannot ask for chassis" },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        json_t *resources = J (tab[i].resources);
        const char *fault = dws_first_fault (tab[i].commands, resources);

        assert_contains (fault ? fault : "none",
                         tab[i].fault ? tab[i].fault : "none");
        json_decref (resources);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (test_pool_nodes, setup, teardown),
        cmocka_unit_test_setup_teardown (test_deep, setup, teardown),
        cmocka_unit_test (test_bad_status),
        cmocka_unit_test (test_fault),
        cmocka_unit_test_setup_teardown (test_choose, setup, teardown),
        cmocka_unit_test_setup_teardown (test_location, setup, teardown),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

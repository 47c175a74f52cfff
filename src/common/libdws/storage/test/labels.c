/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of labels.c.
 */

#include "libdws/storage/labels.h"
#include "libdws/storage/test/with.h"
#include "libdws/test/util.h"

#define SET(strategy, label, labels) \
    "{'allocationStrategy': 'Allocate" strategy "', 'label': '" label "'," \
    " 'minimumCapacity': 1, 'constraints': {'labels': [" labels "]}}"
#define BREAKDOWN(sets) \
    "{'metadata': {'name': 'w-0'}, 'status': {'ready': true, 'storage':" \
    " {'reference': {'name': 'w-0', 'namespace': 'default'}," \
    " 'allocationSets': [" sets "]}}}"

#define USUAL "'dataworkflowservices.github.io/storage=Rabbit'"
#define FAST "'tier=fast'"
#define EACH_FAST SET ("PerCompute", "xfs", FAST ", " USUAL)
#define SOME_FAST SET ("AcrossServers", "ost", FAST)
#define SOME_NEW SET ("SingleServer", "mgt", "'new=yes'")

/* Nodes: three of r1 and two of r2 (fast), one of r3, one of r4 (no Storage).
 */
static const char *mapping_text =
    "{'computes': {'a1': 'r1', 'a2': 'r1', 'a3': 'r1', 'b1': 'r2',"
    "              'b2': 'r2', 'c1': 'r3', 'd1': 'r4'},"
    " 'rabbits': {'r1': {'capacity': 1, 'hostlist': 'a[1-3]'},"
    "             'r2': {'capacity': 1, 'hostlist': 'b[1-2]'},"
    "             'r3': {'capacity': 1, 'hostlist': 'c1'},"
    "             'r4': {'capacity': 1, 'hostlist': 'd1'}}}";

#define RABBIT "'dataworkflowservices.github.io/storage': 'Rabbit'"

static const char *storages_text =
    "{'r1': {'metadata': {'labels': {" RABBIT ", 'tier': 'fast'}}},"
    " 'r2': {'metadata': {'labels': {" RABBIT ", 'tier': 'fast',"
    "                                'new': 'yes'}}},"
    " 'r3': {'metadata': {'labels': {" RABBIT ", 'tier': 'fastest'}}},"
    " 'of-another-machine': {'metadata': {}}}";

static const struct {
    const char *breakdowns;
    int nodes;
    int errnum;
    const char *want;           // the constraint, or part of the message
} table[] = {
    { "[]", 1, 0, "null" },
    { "[{'status': {'ready': true}}]", 1, 0, "null" },
    { "[" BREAKDOWN (SET ("PerCompute", "xfs", USUAL)) "]", 9, 0, "null" },
    // r3 alone lacks it
    { "[" BREAKDOWN (EACH_FAST) "]", 2, 0, "{'hostlist': ['a[1-3],b[1-2],d1']}" },
    { "[" BREAKDOWN (EACH_FAST) "]", 6, 0, "{'hostlist': ['a[1-3],b[1-2],d1']}" },
    { "[" BREAKDOWN (EACH_FAST) "]", INT32_MAX, 0,
      "{'hostlist': ['a[1-3],b[1-2],d1']}" },
    { "[" BREAKDOWN (EACH_FAST) "]", 7, ENOSPC,
      "w-0, set xfs: the rabbits with label tier=fast have 6 nodes,"
      " the job needs 7" },
    { "[" BREAKDOWN (SET ("PerServer", "gfs2", "'x', " USUAL)) "]", 2, ENOSPC,
      "label x have 1 nodes, the job needs 2" },
    { "[" BREAKDOWN (SET ("PerCompute", "xfs", FAST ", 'q=r', " USUAL)) "]", 2,
      ENOSPC, "label tier=fast, q=r have 1 nodes, the job" },
    // some rabbits will do: all of them while there are enough nodes
    { "[" BREAKDOWN (SOME_FAST) "]", 6, 0,
      "{'hostlist': ['a[1-3],b[1-2],d1']}" },
    { "[" BREAKDOWN (SOME_FAST) "]", 7, 0, "null" },
    { "[" BREAKDOWN (SOME_NEW) "]", 3, 0, "{'hostlist': ['b[1-2],d1']}" },
    { "[" BREAKDOWN (SOME_NEW) "]", INT32_MAX, 0, "null" },
    // all of several, of several directives
    { "[" BREAKDOWN (SOME_NEW) ", " BREAKDOWN (EACH_FAST) "]", 4, 0,
      "{'hostlist': ['a[1-3],b[1-2],d1']}" },
    { "[" BREAKDOWN (EACH_FAST ", " SOME_NEW) "]", 2, 0,
      "{'hostlist': ['b[1-2],d1']}" },
    { "[" BREAKDOWN (SET ("PerCompute", "xfs", FAST ", 'new=yes'")) "]", 1, 0,
      "{'hostlist': ['b[1-2],d1']}" },
    { "[{'metadata': {'name': 'w-0'}}]", 1, EAGAIN, "not ready" },
};

static void test_table (void **state)
{
    json_t *mapping = J (mapping_text);
    json_t *storages = J (storages_text);
    struct dws_topology *topo = dws_topology_create (mapping, NULL);

    assert_non_null (topo);
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *breakdowns = J (table[i].breakdowns);
        dws_error_t e = { "" };
        json_t *o;

        errno = 0;
        o = WITH_BREAKDOWNS (breakdowns, &e,
                             dws_labels_constraint (bd, storages, topo,
                                                    table[i].nodes, false, &e));
        if (table[i].errnum) {
            assert_null (o);
            assert_int_equal (errno, table[i].errnum);
            assert_contains (e.text, table[i].want);
        }
        else {
            if (!o)
                fail_msg ("row %zu: %s", i, e.text);
            assert_json (o, table[i].want);
        }
        json_decref (o);
        json_decref (breakdowns);
    }
    dws_topology_destroy (topo);
    json_decref (storages);
    json_decref (mapping);
}

/* No rabbit that is known has it.
 */
static void test_nowhere (void **state)
{
    json_t *mapping = J ("{'computes': {'a1': 'r1'}, 'rabbits': {"
                         " 'r1': {'capacity': 1, 'hostlist': 'a1'}}}");
    json_t *storages = J ("{'r1': {'metadata': {}}}");
    json_t *breakdowns = J ("[" BREAKDOWN (SOME_FAST) "]");
    struct dws_topology *topo = dws_topology_create (mapping, NULL);
    dws_error_t e = { "" };
    json_t *o;

    assert_null (WITH_BREAKDOWNS (breakdowns, &e,
                                  dws_labels_constraint (bd, storages, topo, 3,
                                                         false, &e)));
    assert_int_equal (errno, ENOSPC);
    assert_contains (e.text, "tier=fast have 0 nodes, the job needs 1");
    // the rabbits that have it may be elsewhere
    o = WITH_BREAKDOWNS (breakdowns, &e,
                         dws_labels_constraint (bd, storages, topo, 3, true,
                                                &e));
    assert_json (o, "null");
    json_decref (o);
    // as long as no Storage is known nothing is asked for
    o = WITH_BREAKDOWNS (breakdowns, &e,
                         dws_labels_constraint (bd, NULL, topo, 3, false, &e));
    assert_json (o, "null");
    json_decref (o);
    dws_topology_destroy (topo);
    json_decref (breakdowns);
    json_decref (storages);
    json_decref (mapping);
}

/* A Storage of another kind is none of them.
 */
static void test_usual (void **state)
{
    json_t *mapping = J (mapping_text);
    json_t *storages = J (storages_text);
    json_t *breakdowns = J ("[" BREAKDOWN (EACH_FAST) "]");
    json_t *usual = J ("[" BREAKDOWN (SET ("PerCompute", "xfs", USUAL)) "]");
    json_t *labels = json_object_get (
        json_object_get (json_object_get (storages, "r2"), "metadata"), "labels");
    struct dws_topology *topo = dws_topology_create (mapping, NULL);
    dws_error_t e = { "" };
    json_t *o;

    json_object_set_new (labels, "dataworkflowservices.github.io/storage",
                         json_string ("Other"));
    o = WITH_BREAKDOWNS (usual, &e,
                         dws_labels_constraint (bd, storages, topo, 4, false,
                                                &e));
    assert_json (o, "{'hostlist': ['a[1-3],c1,d1']}");
    json_decref (o);
    o = WITH_BREAKDOWNS (breakdowns, &e,
                         dws_labels_constraint (bd, storages, topo, 4, false,
                                                &e));
    assert_json (o, "{'hostlist': ['a[1-3],d1']}");
    json_decref (o);
    assert_null (WITH_BREAKDOWNS (usual, &e,
                                  dws_labels_constraint (bd, storages, topo, 6,
                                                         false, &e)));
    assert_string_equal (e.text, "w-0, set xfs: the rabbits with label"
                         " dataworkflowservices.github.io/storage=Rabbit have 5"
                         " nodes, the job needs 6");
    dws_topology_destroy (topo);
    json_decref (usual);
    json_decref (breakdowns);
    json_decref (storages);
    json_decref (mapping);
}

static void test_missing (void **state)
{
    static const struct {
        const char *wanted;
        const char *labels;
        const char *missing;
    } tab[] = {
        { NULL, NULL, NULL },
        { "[" USUAL "]", NULL, "dataworkflowservices.github.io/storage=Rabbit" },
        { "[" USUAL "]", "{" RABBIT "}", NULL },
        { "[" USUAL "]", "{'dataworkflowservices.github.io/storage': 'Other'}",
          "dataworkflowservices.github.io/storage=Rabbit" },
        { "['a=b']", NULL, "a=b" },
        { "['a=b']", "{'a': 'b'}", NULL },
        { "['a=b', 'c=d']", "{'a': 'b'}", "c=d" },
        { "['a=b']", "{'a': 'bb', 'aa': 'b'}", "a=b" },
        { "['a=b']", "{'a': 5}", "a=b" },
        { "['a']", "{'a': ''}", NULL },
        { "['a=']", "{'a': ''}", NULL },
        { "['a']", "{'a': 'b'}", "a" },
        { "[5]", NULL, NULL },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        json_t *wanted = J (tab[i].wanted);
        json_t *labels = J (tab[i].labels);
        const char *s = dws_labels_missing (wanted, labels);

        if (tab[i].missing)
            assert_string_equal (s, tab[i].missing);
        else
            assert_null (s);
        json_decref (labels);
        json_decref (wanted);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_table),
        cmocka_unit_test (test_nowhere),
        cmocka_unit_test (test_usual),
        cmocka_unit_test (test_missing),
    };

    return cmocka_run_group_tests_name ("labels", tests, NULL, NULL);
}

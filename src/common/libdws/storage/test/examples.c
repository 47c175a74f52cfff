/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * DirectiveBreakdowns as DWS documents them, and constraints that come together.
 */

#include "libdws/storage/allocation.h"
#include "libdws/storage/location.h"
#include "libdws/storage/test/with.h"
#include "libdws/test/util.h"

#define G5 "5368709120"
#define G10 "10737418240"
#define G20 "21474836480"
#define G100 "107374182400"

#define RABBIT "dataworkflowservices.github.io/storage"

/* A Storage with 100 GiB.
 */
#define STORAGE(name, labels) \
    "{'metadata': {'name': '" name "', 'labels': {" labels "}}," \
    " 'spec': {'state': 'Enabled'}, 'status': {'capacity': " G100 "," \
    " 'status': 'Ready'}}"
#define FAST "'" RABBIT "': 'Rabbit', 'tier': 'fast', 'zone': '1'"
#define SLOW "'" RABBIT "': 'Rabbit', 'tier': 'slow'"

static const char *storage_example =
    "[{'metadata': {'name': 'example-0'},"
    "  'spec': {'directive':"
    "           '#DW jobdw capacity=1GiB type=xfs name=example',"
    "           'userID': 7900},"
    "  'status': {'ready': true, 'storage': {"
    "   'allocationSets': [{"
    "    'allocationStrategy': 'AllocatePerCompute',"
    "    'constraints': {'labels': ['" RABBIT "=Rabbit']},"
    "    'label': 'xfs',"
    "    'minimumCapacity': 1073741824}],"
    "   'lifetime': 'job',"
    "   'reference': {'kind': 'Servers', 'name': 'example-0',"
    "                 'namespace': 'default'}}}}]";

static const char *compute_example =
    "[{'metadata': {'name': 'example-0'},"
    "  'spec': {'directive':"
    "           '#DW jobdw capacity=1TiB type=lustre name=example',"
    "           'userID': 3450},"
    "  'status': {'ready': true, 'compute': {'constraints': {'location': ["
    "   {'access': [{'priority': 'mandatory', 'type': 'network'},"
    "               {'priority': 'bestEffort', 'type': 'physical'}],"
    "    'reference': {'fieldPath': 'servers.spec.allocationSets[0]',"
    "                  'kind': 'Servers', 'name': 'example-0',"
    "                  'namespace': 'default'}},"
    "   {'access': [{'priority': 'mandatory', 'type': 'network'}],"
    "    'reference': {'fieldPath': 'servers.spec.allocationSets[1]',"
    "                  'kind': 'Servers', 'name': 'example-0',"
    "                  'namespace': 'default'}}]}}}}]";

/* A Storage that lacks the label of the example is not used.
 */
static void test_storage (void **state)
{
    json_t *breakdowns = J (storage_example);
    json_t *nodes = J ("{'a': 2, 'b': 1}");
    json_t *storages = J ("[" STORAGE ("a", FAST) "," STORAGE ("b", SLOW) "]");
    json_t *others = J ("[" STORAGE ("a", FAST) ","
                        STORAGE ("b", "'" RABBIT "': 'Other'") "]");
    struct dws_allocation_opts opts = { .storages = storages };
    dws_error_t e = { "" };
    json_t *o;

    o = WITH_BREAKDOWNS (breakdowns, &e,
                         dws_allocation_sets (bd, nodes, &opts, &e));
    assert_json (o, "[{'servers': {'name': 'example-0',"
                    "              'namespace': 'default'},"
                    "  'allocationSets': [{'label': 'xfs',"
                    "   'allocationSize': 1073741824, 'storage': ["
                    "    {'name': 'a', 'allocationCount': 2},"
                    "    {'name': 'b', 'allocationCount': 1}]}]}]");
    json_decref (o);
    opts.storages = others;
    assert_null (WITH_BREAKDOWNS (breakdowns, &e,
                                  dws_allocation_sets (bd, nodes, &opts, &e)));
    assert_contains (e.text, "lacks label " RABBIT "=Rabbit");
    json_decref (others);
    json_decref (storages);
    json_decref (nodes);
    json_decref (breakdowns);
}

/* What every node reaches by network, and is only rather near, limits nobody.
 */
static void test_compute (void **state)
{
    json_t *breakdowns = J (compute_example);
    json_t *mapping = J (
        "{'computes': {'a1': 'a', 'b1': 'b'},"
        " 'rabbits': {'a': {'capacity': 1, 'hostlist': 'a1'},"
        "             'b': {'capacity': 1, 'hostlist': 'b1'}}}");
    struct dws_topology *topo = dws_topology_create (mapping, NULL);
    dws_error_t e = { "" };
    json_t *o;

    assert_non_null (topo);
    o = WITH_BREAKDOWNS (breakdowns, &e, dws_location_servers (bd));
    assert_json (o, "[]");
    json_decref (o);
    o = WITH_BREAKDOWNS (breakdowns, &e,
                         dws_location_constraint (bd, NULL, topo, 2, &e));
    assert_json (o, "null");
    json_decref (o);
    dws_topology_destroy (topo);
    json_decref (mapping);
    json_decref (breakdowns);
}

#define SET(label, bytes, constraints) \
    "{'allocationStrategy': 'AllocateAcrossServers', 'label': '" label "'," \
    " 'minimumCapacity': " bytes ", 'constraints': {" constraints "}}"
#define EXCLUSIVE "'colocation': [{'type': 'exclusive', 'key': 'k'}]"
#define WANT(label, bytes, storage) \
    "{'label': '" label "', 'allocationSize': " bytes "," \
    " 'storage': [" storage "]}"
#define ON(rabbit, count) \
    "{'name': '" rabbit "', 'allocationCount': " #count "}"

/* Rabbit a is slow, b and c are fast; c is in no zone.
 */
static const struct {
    const char *sets;
    const char *reserved;
    const char *want;           // the sets, or NULL
    const char *text;           // else part of the message
    const char *keys;           // beside the sets: what they keep others from
} table[] = {
    // a count is one, whatever the scale
    { SET ("ost", G20, "'count': 2, 'scale': 10, 'labels': ['tier=fast']"),
      NULL, WANT ("ost", G10, ON ("b", 1) "," ON ("c", 1)), NULL, NULL },
    { SET ("ost", G20, "'scale': 10, 'count': 1, 'labels': ['tier=slow']"),
      NULL, WANT ("ost", G20, ON ("a", 1)), NULL, NULL },
    // all labels, not any
    { SET ("ost", G10, "'labels': ['" RABBIT "=Rabbit', 'tier=fast',"
                       " 'zone=1']"),
      NULL, WANT ("ost", G10, ON ("b", 1)), NULL, NULL },
    { SET ("ost", G10, "'labels': ['tier=fast', 'tier=slow']"),
      NULL, NULL, "lacks label tier=", NULL },
    // the label decides, though more is set aside elsewhere
    { SET ("mgt", G5, "'count': 1, 'labels': ['tier=slow'], " EXCLUSIVE) ","
      SET ("mdt", G5, "'count': 1, 'labels': ['tier=fast'], " EXCLUSIVE),
      "{'a': " G5 ", 'b': " G100 ", 'c': " G5 "}",
      WANT ("mgt", G5, ON ("a", 1)) "," WANT ("mdt", G5, ON ("b", 1)), NULL,
      ", 'colocation': {'mgt': ['k'], 'mdt': ['k']}" },
    { SET ("mgt", G5, "'count': 1, 'labels': ['tier=slow'], " EXCLUSIVE) ","
      SET ("mdt", G5, "'count': 1, 'labels': ['tier=slow'], " EXCLUSIVE),
      "{'a': " G100 ", 'b': " G100 ", 'c': " G100 "}",
      NULL, "w-0, set m", NULL },
};

static void test_together (void **state)
{
    json_t *nodes = J ("{'a': 1, 'b': 1, 'c': 1}");
    json_t *storages = J ("[" STORAGE ("a", SLOW) "," STORAGE ("b", FAST) ","
                          STORAGE ("c", "'tier': 'fast'") "]");

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        char text[2048];
        struct dws_bytes reserved = BYTES (table[i].reserved);
        struct dws_allocation_opts opts = {
            .storages = storages,
            .reserved = &reserved,
        };
        dws_error_t e = { "" };
        json_t *breakdowns;
        json_t *o;

        snprintf (text, sizeof (text),
                  "[{'metadata': {'name': 'w-0'}, 'status': {'ready': true,"
                  " 'storage': {'lifetime': 'job', 'reference': {'kind':"
                  " 'Servers', 'name': 'w-0', 'namespace': 'default'},"
                  " 'allocationSets': [%s]}}}]", table[i].sets);
        breakdowns = J (text);
        errno = 0;
        o = WITH_BREAKDOWNS (breakdowns, &e,
                             dws_allocation_sets (bd, nodes, &opts, &e));
        if (table[i].want) {
            if (!o)
                fail_msg ("row %zu: %s", i, e.text);
            snprintf (text, sizeof (text), "[{'servers': {'name': 'w-0',"
                      " 'namespace': 'default'}, 'allocationSets': [%s]%s}]",
                      table[i].want, table[i].keys ? table[i].keys : "");
            assert_json (o, text);
        }
        else {
            assert_null (o);
            assert_int_equal (errno, ENOSPC);
            assert_contains (e.text, table[i].text);
        }
        json_decref (o);
        json_decref (breakdowns);
        dws_bytes_clear (&reserved);
    }
    json_decref (storages);
    json_decref (nodes);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_storage),
        cmocka_unit_test (test_compute),
        cmocka_unit_test (test_together),
    };

    return cmocka_run_group_tests_name ("examples", tests, NULL, NULL);
}

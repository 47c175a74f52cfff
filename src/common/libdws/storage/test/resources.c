/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of resources.c and breakdowns.c: every strategy and constraint on
 * every form of resources. Expected numbers are worked out by hand, the
 * arithmetic stands beside them.
 */

#include "libdws/storage/resources.h"
#include "libdws/storage/test/resources.h"
#include "libdws/storage/test/with.h"
#include "libdws/test/util.h"

#define SET(strategy, label, bytes, constraints) \
    "{'allocationStrategy': 'Allocate" strategy "', 'label': '" label "'," \
    " 'minimumCapacity': " #bytes ", 'constraints': {" constraints \
    "'labels': ['dataworkflowservices.github.io/storage=Rabbit']}}"

#define BREAKDOWN(sets) \
    "{'kind': 'DirectiveBreakdown', 'metadata': {'name': 'w-0'}," \
    " 'status': {'ready': true, 'storage': {'lifetime': 'job'," \
    " 'reference': {'kind': 'Servers', 'name': 'w-0'," \
    " 'namespace': 'default'}, 'allocationSets': [" sets "]}}}"

/* 10 GiB, and 10 GiB with the usual padding of 300 MiB */
#define XFS10 SET ("PerCompute", "xfs", 10737418240, "")
#define XFS10_PAD SET ("PerCompute", "xfs", 11051991040, "")
#define ACROSS100 SET ("AcrossServers", "ost", 107374182400, "")

static const struct {
    const char *resources;
    const char *sets;
    int64_t min_gib;
    const char *want;
} table[] = {
    /* AllocatePerCompute: GiB per node, rounded up */
    { "[" NODES (2) "]", XFS10, 0, SLOTS (2, 10) },
    // 10 + 300/1024 -> 11
    { "[" NODES (2) "]", XFS10_PAD, 0, SLOTS (2, 11) },
    // 1 MB is less than a GiB: 1, or what the caller wants at least
    { "[" NODES (1) "]", SET ("PerCompute", "raw", 1000000, ""), 0,
      SLOTS (1, 1) },
    { "[" NODES (1) "]", SET ("PerCompute", "raw", 1000000, ""), 4,
      SLOTS (1, 4) },
    { "[" NODES (3) "]", SET ("PerCompute", "gfs2", 1, ""), 0,
      SLOTS (3, 1) },
    // exactly one GiB, and a byte more
    { "[" NODES (1) "]", SET ("PerCompute", "xfs", 1073741824, ""), 0,
      SLOTS (1, 1) },
    { "[" NODES (1) "]", SET ("PerCompute", "xfs", 1073741825, ""), 0,
      SLOTS (1, 2) },
    // a chassis of 8 nodes: 8 * 10
    { CHASSIS (4, 8), XFS10, 0, CHASSIS_SSD (4, 8, 80) },
    // 8 * 11
    { CHASSIS (1, 8), XFS10_PAD, 4, CHASSIS_SSD (1, 8, 88) },
    // two sets: 10 + 11
    { "[" NODES (2) "]", XFS10 ", " XFS10_PAD, 0, SLOTS (2, 21) },

    /* AllocateAcrossServers: a total, shared by the nodes */
    // 100 / 3 = 33.3 -> 34
    { "[" NODES (3) "]", ACROSS100, 0, SLOTS (3, 34) },
    // 100 / 4 = 25
    { "[" NODES (4) "]", ACROSS100, 0, SLOTS (4, 25) },
    // one share for each of 3 chassis: 100 / 3 -> 34
    { CHASSIS (3, 8), ACROSS100, 0, CHASSIS_SSD (3, 8, 34) },
    // a target of 4 GB is less than 4 GiB: 4 / 2 = 2
    { "[" NODES (2) "]", SET ("AcrossServers", "ost", 1073741824, ""), 0,
      SLOTS (2, 2) },
    { "[" NODES (2) "]", SET ("AcrossServers", "ost", 1073741824, ""), 4,
      SLOTS (2, 2) },
    // scale changes the number of allocations, not the total
    { "[" NODES (4) "]", SET ("AcrossServers", "ost", 107374182400,
                              "'scale': 10, "), 4, SLOTS (4, 25) },
    // count 3: each ceil(100/3) = 34, 3 * 34 = 102, 102 / 4 = 25.5 -> 26
    { "[" NODES (4) "]", SET ("AcrossServers", "mdt", 107374182400,
                              "'count': 3, "), 0, SLOTS (4, 26) },
    // count 5 of 1 GiB in all, each at least 4: 20, 20 / 2 = 10
    { "[" NODES (2) "]", SET ("AcrossServers", "mdt", 1073741824,
                              "'count': 5, "), 4, SLOTS (2, 10) },
    // the same over 3 chassis: 20 / 3 -> 7
    { CHASSIS (3, 2), SET ("AcrossServers", "mdt", 1073741824,
                           "'count': 5, "), 4, CHASSIS_SSD (3, 2, 7) },

    /* AllocateSingleServer: one, shared like a total */
    // 5 / 2 -> 3
    { "[" NODES (2) "]", SET ("SingleServer", "mgt", 5368709120, ""), 0,
      SLOTS (2, 3) },
    { CHASSIS (5, 2), SET ("SingleServer", "mgt", 5368709120, ""), 0,
      CHASSIS_SSD (5, 2, 1) },
    // strategy decides, not the label: an xfs on one server, 10 / 2
    { "[" NODES (2) "]", SET ("SingleServer", "xfs", 10737418240, ""), 0,
      SLOTS (2, 5) },
    // and an ost per compute node
    { "[" NODES (2) "]", SET ("PerCompute", "ost", 10737418240, ""), 0,
      SLOTS (2, 10) },

    /* AllocatePerServer: one on each rabbit, of which a node may be alone */
    { "[" NODES (4) "]", SET ("PerServer", "gfs2", 10737418240, ""), 0,
      SLOTS (4, 10) },
    { CHASSIS (2, 8), SET ("PerServer", "gfs2", 10737418240, ""), 0,
      CHASSIS_SSD (2, 8, 10) },

    /* Lustre as the template profile has it, 4 nodes:
     * ost 100 / 4 = 25, mgtmdt 5 / 4 -> 2 */
    { "[" NODES (4) "]",
      SET ("AcrossServers", "ost", 107374182400, "'scale': 5, ") ", "
      SET ("AcrossServers", "mgtmdt", 5368709120,
           "'count': 1, 'colocation': [{'type': 'exclusive',"
           " 'key': 'lustre-mgt'}], "), 0, SLOTS (4, 27) },

    /* other forms */
    // storage_node beside the nodes of a chassis, and at the top
    { "[{'type': 'chassis', 'count': 2, 'with': [" NODES (4) ","
      " {'type': 'storage_node', 'count': 1}]}]", XFS10, 0,
      "[{'type': 'chassis', 'count': 2, 'with': [" NODES (4) ","
      " {'type': 'storage_node', 'count': 1}, " SSD (40) "]}]" },
    { "[" NODES (2) ", {'type': 'storage_node', 'count': 1}]", XFS10, 0,
      "[{'type': 'slot', 'count': 2, 'label': 'rabbit', 'with': ["
      NODES (1) ", " SSD (10) "]}, {'type': 'storage_node',"
      " 'count': 1}]" },
    // a slot that has nodes keeps its label: 2 * 10
    { "[{'type': 'slot', 'count': 3, 'label': 'mine', 'with': ["
      NODES (2) "]}]", XFS10, 0,
      "[{'type': 'slot', 'count': 3, 'label': 'mine', 'with': ["
      NODES (2) ", " SSD (20) "]}]" },
    // what else a node says stays
    { "[{'type': 'node', 'count': 2, 'exclusive': true, 'unit': 'x',"
      " 'with': [" TASK "]}]", XFS10, 0,
      "[{'type': 'slot', 'count': 2, 'label': 'rabbit', 'with': ["
      "{'type': 'node', 'count': 1, 'exclusive': true, 'unit': 'x',"
      " 'with': [" TASK "]}, " SSD (10) "]}]" },
    // a range of one number is a number
    { "[{'type': 'node', 'count': {'min': 2, 'max': 2, 'operator': '+',"
      " 'operand': 1}, 'with': [" TASK "]}]", XFS10, 0, SLOTS (2, 10) },

    /* there already: the directives say how much it is */
    { SLOTS (2, 7), XFS10, 0, SLOTS (2, 10) },
    { CHASSIS_SSD (2, 8, 7), XFS10, 0, CHASSIS_SSD (2, 8, 80) },
    { "[" NODES (2) ", " SSD (7) "]", XFS10, 0, SLOTS (2, 10) },
    { "[{'type': 'slot', 'count': 2, 'label': 'rabbit', 'with': ["
      SSD (7) ", " NODES (1) ", " SSD (8) "]}]", XFS10, 0, SLOTS (2, 10) },
    { "[{'type': 'node', 'count': 2, 'with': [" TASK ", " SSD (7) "]}]",
      XFS10, 0, SLOTS (2, 10) },
    { SLOTS (2, 7), "", 0,
      "[{'type': 'slot', 'count': 2, 'label': 'rabbit', 'with': ["
      NODES (1) "]}]" },
};

static json_t *make_breakdowns (const char *sets)
{
    static char buf[4096];

    snprintf (buf, sizeof (buf), "[" BREAKDOWN ("%s") "]", sets);
    return J (buf);
}

static void test_table (void **state)
{
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *resources = J (table[i].resources);
        json_t *breakdowns = make_breakdowns (table[i].sets);
        struct dws_resources_opts opts = { .min_gib = table[i].min_gib };
        dws_error_t e = { "" };
        json_t *o = WITH_BREAKDOWNS (breakdowns, &e,
                                     dws_resources_apply (resources, bd, &opts,
                                                          &e));
        json_t *again;

        if (!o)
            fail_msg ("row %zu: %s", i, e.text);
        assert_json (o, table[i].want);
        assert_int_equal (dws_resources_has_ssd (o),
                          strstr (table[i].want, "ssd") != NULL);
        // the input is as it was, and a second time changes nothing
        assert_json (resources, table[i].resources);
        again = WITH_BREAKDOWNS (breakdowns, &e,
                                 dws_resources_apply (o, bd, &opts, &e));
        assert_true (json_equal (o, again));
        json_decref (again);
        json_decref (o);
        json_decref (breakdowns);
        json_decref (resources);
    }
}

static void test_bad_resources (void **state)
{
    static const struct {
        const char *resources;
        const char *text;
    } bad[] = {
        { NULL, "list that is not empty" },
        { "[]", "list that is not empty" },
        { "{}", "list that is not empty" },
        { "[" TASK "]", "ask for a number of nodes (-N)" },
        { "[{'type': 'core', 'count': 4}]", "number of nodes (-N)" },
        { "[{'type': 'storage_node', 'count': 1}]", "nodes (-N)" },
        { "[{}]", "nodes (-N)" },
        { "[7]", "nodes (-N)" },
        { "[" NODES (1) ", " NODES (2) "]", "there are several" },
        { "[{'type': 'chassis', 'count': 1}]", "nodes (-N)" },
        { "[{'type': 'chassis', 'count': 1, 'with': [" NODES (1) ", "
          NODES (1) "]}]", "several 'node'" },
        { "[{'type': 'chassis', 'count': 1, 'with': [" TASK "]}]",
          "'slot' cannot stand below 'chassis'" },
        { "[{'type': 'node', 'count': 0}]", "count of node" },
        { "[{'type': 'node', 'count': 'x'}]", "fixed number of node" },
        { "[{'type': 'node'}]", "fixed number" },
        { "[{'type': 'node', 'count': {'min': 2, 'max': 8}}]",
          "fixed number of node" },
        { "[{'type': 'node', 'count': {'min': 2}}]", "fixed number" },
        { "[{'type': 'chassis', 'count': 1, 'with': ["
          "{'type': 'node', 'count': -1}]}]", "count of node" },
        { "[{'type': 'chassis', 'count': -1, 'with': [" NODES (1) "]}]",
          "count of chassis" },
    };
    json_t *breakdowns = make_breakdowns (XFS10);

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        json_t *resources = J (bad[i].resources);
        dws_error_t e = { "" };

        errno = 0;
        assert_null (WITH_BREAKDOWNS (breakdowns, &e,
                                      dws_resources_apply (resources, bd, NULL,
                                                           &e)));
        assert_int_equal (errno, EINVAL);
        assert_contains (e.text, bad[i].text);
        json_decref (resources);
    }
    json_decref (breakdowns);
}

static void test_bad_breakdowns (void **state)
{
    static const struct {
        const char *breakdown;
        int errnum;
        const char *text;
    } bad[] = {
        { "5", EINVAL, "must be a list" },
        { "[5]", EINVAL, "malformed" },
        { "[{'kind': 'SomethingElse', 'metadata': {'name': 'w-0'}}]",
          EINVAL, "w-0 is of kind 'SomethingElse'" },
        { "[{'metadata': {'name': 'w-0'}}]", EAGAIN, "w-0 is not ready" },
        { "[{'metadata': {'name': 'w-0'}, 'status': {'ready': false}}]",
          EAGAIN, "w-0 is not ready" },
        { "[{'status': {'ready': true, 'storage': {}}}]", EINVAL,
          "must have allocationSets" },
        { "[{'status': {'ready': true, 'storage': {'allocationSets': [],"
          " 'reference': {}}}}]", EINVAL, "reference" },
        { "[" BREAKDOWN ("{}") "]", EINVAL, "w-0: an allocation set must" },
        { "[" BREAKDOWN (SET ("Magically", "xfs", 1, "")) "]", EINVAL,
          "set xfs: unknown allocationStrategy 'AllocateMagically'" },
        { "[" BREAKDOWN (SET ("PerCompute", "xfs", 0, "")) "]", EINVAL,
          "minimumCapacity 0" },
        { "[" BREAKDOWN (SET ("AcrossServers", "ost", 1, "'scale': 11, "))
          "]", EINVAL, "scale 11" },
        { "[" BREAKDOWN (SET ("AcrossServers", "ost", 1, "'scale': 0, "))
          "]", EINVAL, "scale 0" },
        { "[" BREAKDOWN (SET ("AcrossServers", "ost", 1, "'count': 0, "))
          "]", EINVAL, "count 0" },
        { "[" BREAKDOWN (SET ("AcrossServers", "ost", 1,
                              "'count': 100001, "))
          "]", EINVAL, "count 100001" },
        { "[" BREAKDOWN (SET ("AcrossServers", "ost", 1, "'count': 'x', "))
          "]", EINVAL, "malformed constraints" },
        { "[" BREAKDOWN (SET ("AcrossServers", "ost", 1,
                              "'colocation': [{'type': 'near',"
                              " 'key': 'k'}], ")) "]",
          EINVAL, "'exclusive'" },
        { "[" BREAKDOWN (SET ("AcrossServers", "ost", 1,
                              "'colocation': {'type': 'near',"
                              " 'key': 'k'}, ")) "]",
          EINVAL, "'exclusive'" },
        { "[" BREAKDOWN (SET ("AcrossServers", "ost", 1,
                              "'colocation': 'exclusive', ")) "]",
          EINVAL, "constraints.colocation is neither a list nor an object" },
        // more GiB than fit into an int
        { "[" BREAKDOWN (SET ("PerCompute", "xfs", 4611686018427387903,
                              "")) "]", EINVAL, "more storage" },
    };
    json_t *resources = J ("[" NODES (2) "]");

    for (size_t i = 0; i < sizeof (bad) / sizeof (bad[0]); i++) {
        json_t *breakdowns = J (bad[i].breakdown);
        dws_error_t e = { "" };

        errno = 0;
        assert_null (WITH_BREAKDOWNS (breakdowns, &e,
                                      dws_resources_apply (resources, bd, NULL,
                                                           &e)));
        assert_int_equal (errno, bad[i].errnum);
        assert_contains (e.text, bad[i].text);
        json_decref (breakdowns);
    }
    json_decref (resources);
}

/* persistentdw has no storage, destroy_persistent no breakdown at all: any
 * resources will do.
 */
static void test_no_storage (void **state)
{
    static const char *breakdowns[] = {
        NULL,
        "null",
        "[]",
        "[{'kind': 'DirectiveBreakdown', 'metadata': {'name': 'w-0'},"
        " 'status': {'ready': true, 'requires': [], 'compute': {}}}]",
        "[{'status': {'ready': true, 'storage': null}}]",
    };
    static const char *resources[] = { "[" NODES (2) "]", "[" TASK "]" };

    for (size_t i = 0; i < sizeof (breakdowns) / sizeof (char *); i++) {
        for (size_t j = 0; j < 2; j++) {
            json_t *b = J (breakdowns[i]);
            json_t *r = J (resources[j]);
            json_t *o = WITH_BREAKDOWNS (b, NULL,
                                         dws_resources_apply (r, bd, NULL,
                                                              NULL));

            assert_non_null (o);
            assert_json (o, resources[j]);
            json_decref (o);
            json_decref (r);
            json_decref (b);
        }
    }
}

static void test_maximums (void **state)
{
    static const struct {
        const char *resources;
        const char *sets;
        const char *maximums;
        const char *text;     // NULL: allowed
    } limits[] = {
        { "[" NODES (2) "]", XFS10, "{'xfs': 10}", NULL },
        { "[" NODES (2) "]", XFS10, "{'xfs': 9}",
          "10 GiB of xfs storage per node is more than the 9 GiB" },
        { "[" NODES (2) "]", XFS10, "{'xfs': 9.5}", "9.5 GiB" },
        { "[" NODES (2) "]", XFS10, "{'gfs2': 1}", NULL },
        // two of 10 each
        { "[" NODES (2) "]", XFS10 ", " XFS10, "{'xfs': 19}", "20 GiB" },
        // a chassis of 8: 80 per chassis is 10 per node
        { CHASSIS (2, 8), XFS10, "{'xfs': 10}", NULL },
        { CHASSIS (2, 8), XFS10, "{'xfs': 9}", "10 GiB of xfs" },
        // 100 over 4 nodes is 25 per node, as is what goes with it
        // (three targets would be rounded up by 128 KiB in all)
        { "[" NODES (4) "]", ACROSS100, "{'lustre': 25.001}", NULL },
        { "[" NODES (4) "]",
          ACROSS100 ", " SET ("SingleServer", "mgt", 107374182400, ""),
          "{'lustre': 50.001}", NULL },
        { "[" NODES (4) "]",
          ACROSS100 ", " SET ("SingleServer", "mgt", 107374182400, ""),
          "{'lustre': 49}", "50 GiB of lustre" },
        // bytes, not whole GiB: 300 MiB of padding are 0.293 GiB
        { "[" NODES (2) "]", XFS10_PAD, "{'xfs': 10.3}", NULL },
        { "[" NODES (2) "]", XFS10_PAD, "{'xfs': 10.29}", "xfs storage" },
        { "[" NODES (4) "]", ACROSS100, "{'lustre': 24}",
          "25 GiB of lustre" },
    };

    for (size_t i = 0; i < sizeof (limits) / sizeof (limits[0]); i++) {
        json_t *resources = J (limits[i].resources);
        json_t *breakdowns = make_breakdowns (limits[i].sets);
        json_t *maximums = J (limits[i].maximums);
        struct dws_resources_opts opts = { .maximums = maximums };
        dws_error_t e = { "" };
        json_t *o = WITH_BREAKDOWNS (breakdowns, &e,
                                     dws_resources_apply (resources, bd, &opts,
                                                          &e));

        if (limits[i].text) {
            assert_null (o);
            assert_contains (e.text, limits[i].text);
        }
        else if (!o)
            fail_msg ("row %zu: %s", i, e.text);
        json_decref (o);
        json_decref (maximums);
        json_decref (breakdowns);
        json_decref (resources);
    }
}

/* What no rabbit can make is refused with what one can.
 */
static void test_rabbits (void **state)
{
    static const struct {
        const char *resources;
        const char *sets;
        int64_t bytes;
        const char *text;     // NULL: allowed
    } limits[] = {
        { "[" NODES (2) "]", XFS10, 0, NULL },
        { "[" NODES (2) "]", XFS10, 10 * GIB, NULL },
        { "[" NODES (2) "]", XFS10, 10 * GIB - 1,
          "10 GiB of rabbit storage are needed for each node; no rabbit has"
          " more than 9 GiB (0.008789 TiB)" },
        { "[" NODES (2) "]", XFS10 ", " XFS10, 19 * GIB, "20 GiB" },
        { CHASSIS (2, 8), XFS10, 80 * GIB, NULL },
        { CHASSIS (2, 8), XFS10, 79 * GIB,
          "80 GiB of rabbit storage are needed for each 8 nodes of a rabbit;"
          " no rabbit has more than 79 GiB" },
        { "[" NODES (1) "]", SET ("PerCompute", "xfs", 37383395344384, ""),
          INT64_C (35184372088832),
          "34816 GiB of rabbit storage are needed for each node; no rabbit"
          " has more than 32768 GiB (32 TiB)" },
        { "[" NODES (4) "]", ACROSS100, 25 * GIB, NULL },
        { "[" NODES (4) "]", ACROSS100, 24 * GIB, "25 GiB" },
    };

    for (size_t i = 0; i < sizeof (limits) / sizeof (limits[0]); i++) {
        json_t *resources = J (limits[i].resources);
        json_t *breakdowns = make_breakdowns (limits[i].sets);
        struct dws_resources_opts opts = { .rabbit_bytes = limits[i].bytes };
        dws_error_t e = { "" };
        json_t *o;

        errno = 0;
        o = WITH_BREAKDOWNS (breakdowns, &e,
                             dws_resources_apply (resources, bd, &opts, &e));
        if (limits[i].text) {
            assert_null (o);
            assert_int_equal (errno, EINVAL);
            assert_contains (e.text, limits[i].text);
        }
        else if (!o)
            fail_msg ("row %zu: %s", i, e.text);
        json_decref (o);
        json_decref (breakdowns);
        json_decref (resources);
    }
}

/* With storage anywhere the scheduler is asked for what is bound to nodes, and the rest
 * must fit on all rabbits together.
 */
static void test_anywhere (void **state)
{
    static const struct {
        const char *sets;
        int64_t total;
        int64_t ssd;          // in the result
        const char *text;
    } rows[] = {
        { SET ("AcrossServers", "ost", 107374182400, ""), 100 * GIB, 0, NULL },
        { SET ("AcrossServers", "ost", 107374182400, ""), 0, 0, NULL },
        { SET ("AcrossServers", "ost", 107374182400, ""), 99 * GIB, 0,
          "100 GiB of rabbit storage are needed; all rabbits together have"
          " 99 GiB" },
        { SET ("SingleServer", "mgt", 5368709120, "") ", "
          SET ("PerCompute", "xfs", 10737418240, ""), 100 * GIB, 10, NULL },
    };
    json_t *resources = J ("[" NODES (4) "]");

    for (size_t i = 0; i < sizeof (rows) / sizeof (rows[0]); i++) {
        struct dws_resources_opts opts = {
            .rabbit_bytes = 20 * GIB,
            .anywhere = true,
            .total_bytes = rows[i].total,
        };
        json_t *breakdowns = make_breakdowns (rows[i].sets);
        dws_error_t e = { "" };
        json_t *o = WITH_BREAKDOWNS (breakdowns, &e,
                                     dws_resources_apply (resources, bd, &opts,
                                                          &e));
        json_int_t ssd = 0;

        if (rows[i].text) {
            assert_null (o);
            assert_contains (e.text, rows[i].text);
        }
        else if (!o)
            fail_msg ("row %zu: %s", i, e.text);
        else if (rows[i].ssd == 0)
            assert_true (json_equal (o, resources));
        else {
            assert_int_equal (json_unpack (o, "[{s:[{},{s:I}]}]",
                                           "with", "count", &ssd), 0);
            assert_int_equal (ssd, rows[i].ssd);
        }
        json_decref (o);
        json_decref (breakdowns);
    }
    json_decref (resources);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_anywhere),
        cmocka_unit_test (test_table),
        cmocka_unit_test (test_bad_resources),
        cmocka_unit_test (test_bad_breakdowns),
        cmocka_unit_test (test_no_storage),
        cmocka_unit_test (test_maximums),
        cmocka_unit_test (test_rabbits),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

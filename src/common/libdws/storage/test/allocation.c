/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of allocation.c and layout.c: every strategy and constraint.
 * Expected numbers are worked out by hand, the arithmetic stands beside them.
 */

#include "libdws/storage/allocation.h"
#include "libdws/storage/reserved.h"
#include "libdws/storage/test/sets.h"
#include "libdws/storage/test/with.h"

struct row {
    const char *nodes;        // the job's nodes per rabbit
    const char *sets;         // of one breakdown
    int64_t min_gib;
    const char *storages;
    const char *used;
    const char *resources;
    const char *want;         // or, if it must fail, part of the message
};

static const struct row table[] = {
    /* AllocatePerCompute: one of the given size for each node */
    { "{'a': 2, 'b': 1}", SET ("PerCompute", "xfs", G10, ""), 0,
      NULL, NULL, NULL, "xfs " G10 " a:2 b:1" },
    { "{'a': 16}", SET ("PerCompute", "raw", "1000000", ""), 4,
      NULL, NULL, NULL, "raw 4294967296 a:16" },
    { "{'a': 2}", SET ("PerCompute", "gfs2", G10, "'labels': [" RABBIT "]"),
      0, "[" STORAGE ("a", G20) "]", NULL, NULL, "gfs2 " G10 " a:2" },

    /* AllocatePerServer: one of the given size on each rabbit */
    { "{'a': 2, 'b': 1}", SET ("PerServer", "gfs2", G10, ""), 0,
      NULL, NULL, NULL, "gfs2 " G10 " a:1 b:1" },

    /* AllocateSingleServer: one; where most room is, or else most nodes */
    { "{'a': 2, 'b': 3}", SET ("SingleServer", "mgt", G5, ""), 0,
      NULL, NULL, NULL, "mgt " G5 " b:1" },
    { "{'a': 2, 'b': 3}", SET ("SingleServer", "mgt", G5, ""), 0,
      "[" STORAGE ("a", G50) ", " STORAGE ("b", G40) "]", NULL, NULL,
      "mgt " G5 " a:1" },
    // 50 - 20 = 30 < 40
    { "{'a': 2, 'b': 3}", SET ("SingleServer", "mgt", G5, ""), 0,
      "[" STORAGE ("a", G50) ", " STORAGE ("b", G40) "]",
      "{'a': " G20 "}", NULL, "mgt " G5 " b:1" },

    /* AllocateAcrossServers with count */
    // 10 / 2 = 5 each, one on each rabbit
    { "{'a': 2, 'b': 3}", SET ("AcrossServers", "ost", G10, "'count': 2"),
      0, NULL, NULL, NULL, "ost " G5 " a:1 b:1" },
    // whatever the scale
    { "{'a': 2, 'b': 3}",
      SET ("AcrossServers", "ost", G10, "'count': 2, 'scale': 10"), 0,
      NULL, NULL, NULL, "ost " G5 " a:1 b:1" },
    // 5 over 2 rabbits: the one with more nodes gets the third; 25 / 5 = 5
    { "{'a': 2, 'b': 3}", SET ("AcrossServers", "ost", G25, "'count': 5"),
      0, NULL, NULL, NULL, "ost " G5 " a:2 b:3" },
    // ceil (25 GiB / 3) = 8947848533.3 -> 8947848534 bytes
    { "{'a': 1, 'b': 1, 'c': 1}",
      SET ("AcrossServers", "ost", G25, "'count': 3"), 0,
      NULL, NULL, NULL, "ost 8947848534 a:1 b:1 c:1" },
    // 10 / 3 is 3.3 GiB, and NNF makes no target of less than 4 GB
    { "{'a': 1, 'b': 1, 'c': 1}",
      SET ("AcrossServers", "ost", G10, "'count': 3"), 0,
      NULL, NULL, NULL, "ost 4000000000 a:1 b:1 c:1" },
    { "{'a': 2}", SET ("SingleServer", "mgt", "1", ""), 0,
      NULL, NULL, NULL, "mgt 4000000000 a:1" },
    // but anything of xfs
    { "{'a': 16}", SET ("PerCompute", "xfs", "1000000", ""), 0,
      NULL, NULL, NULL, "xfs 1000000 a:16" },
    // whoever wants more at least: 4 GiB each
    { "{'a': 1}", SET ("AcrossServers", "mdt", G1, "'count': 2"), 4,
      NULL, NULL, NULL, "mdt 4294967296 a:2" },
    // room for one of 5 on a, so three go to b
    { "{'a': 2, 'b': 2}", SET ("AcrossServers", "ost", G20, "'count': 4"),
      0, "[" STORAGE ("a", G5) ", " STORAGE ("b", G20) "]", NULL, NULL,
      "ost " G5 " a:1 b:3" },

    /* AllocateAcrossServers without: scale, and none is as 5 */
    // one on each rabbit, equal sizes whatever the spread: 100 / 2 = 50
    { "{'a': 16, 'b': 1}", SET ("AcrossServers", "ost", G100, ""), 0,
      NULL, NULL, NULL, "ost " G50 " a:1 b:1" },
    { "{'a': 16, 'b': 1}", SET ("AcrossServers", "ost", G100, "'scale': 5"),
      0, NULL, NULL, NULL, "ost " G50 " a:1 b:1" },
    // the fewest that fit: one, where most of the nodes are
    { "{'a': 1, 'b': 16}", SET ("AcrossServers", "ost", G100, "'scale': 1"),
      0, NULL, NULL, NULL, "ost " G100 " b:1" },
    // as many as nodes: 100 / 4 = 25
    { "{'a': 3, 'b': 1}", SET ("AcrossServers", "ost", G100, "'scale': 10"),
      0, NULL, NULL, NULL, "ost " G25 " a:3 b:1" },
    // 5 rabbits; 240 / 5 = 48
    { "{'a': 4, 'b': 4, 'c': 4, 'd': 4, 'e': 4}",
      SET ("AcrossServers", "ost", G240, ""), 0,
      NULL, NULL, NULL, "ost 51539607552 a:1 b:1 c:1 d:1 e:1" },
    // scale 4: 1 + (5 - 1) * 3/4 = 4; 240 / 4 = 60
    { "{'a': 4, 'b': 4, 'c': 4, 'd': 4, 'e': 4}",
      SET ("AcrossServers", "ost", G240, "'scale': 4"), 0,
      NULL, NULL, NULL, "ost 64424509440 a:1 b:1 c:1 d:1" },
    // scale 3: 1 + (5 - 1) * 2/4 = 3; 240 / 3 = 80
    { "{'a': 4, 'b': 4, 'c': 4, 'd': 4, 'e': 4}",
      SET ("AcrossServers", "ost", G240, "'scale': 3"), 0,
      NULL, NULL, NULL, "ost 85899345920 a:1 b:1 c:1" },
    // scale 2: 1 + 4 * 1/4 = 2; 120
    { "{'a': 4, 'b': 4, 'c': 4, 'd': 4, 'e': 4}",
      SET ("AcrossServers", "ost", G240, "'scale': 2"), 0,
      NULL, NULL, NULL, "ost 128849018880 a:1 b:1" },
    // scale 8, 2 rabbits, 12 nodes: 2 + (12 - 2) * 3/5 = 8; 240 / 8 = 30;
    // one to each, the other 6 by nodes / (allocations + 1), a first on a
    // tie: a 8/2, a 8/3, a 8/4 (b 4/2), b 4/2, a 8/5, a 8/6 (b 4/3)
    { "{'a': 8, 'b': 4}", SET ("AcrossServers", "ost", G240, "'scale': 8"),
      0, NULL, NULL, NULL, "ost 32212254720 a:6 b:2" },
    // none smaller than 4 GB: of 10 GiB at most 2, though scale says 8
    { "{'a': 4, 'b': 4}", SET ("AcrossServers", "ost", G10, "'scale': 10"),
      0, NULL, NULL, NULL, "ost " G5 " a:1 b:1" },
    { "{'a': 4, 'b': 4}", SET ("AcrossServers", "ost", G1, "'scale': 10"),
      0, NULL, NULL, NULL, "ost 4000000000 a:1" },
    // none smaller than 4 GiB: the same
    { "{'a': 4, 'b': 4}", SET ("AcrossServers", "ost", G10, "'scale': 10"),
      4, NULL, NULL, NULL, "ost " G5 " a:1 b:1" },
    // less than 4 GiB in all: one of 4
    { "{'a': 4, 'b': 4}", SET ("AcrossServers", "ost", G1, "'scale': 10"),
      4, NULL, NULL, NULL, "ost 4294967296 a:1" },
    // one does not fit anywhere (100 > 50), so the fewest is 2
    { "{'a': 4, 'b': 4, 'c': 4}",
      SET ("AcrossServers", "ost", G100, "'scale': 1"), 0,
      "[" STORAGE ("a", G50) ", " STORAGE ("b", G50) ", "
      STORAGE ("c", G50) "]", NULL, NULL, "ost " G50 " a:1 b:1" },
    // 2 x 50 do not fit into 75 + 25. Next is 3 x 34: 2 + 0, no. 4 x 25 do.
    { "{'a': 4, 'b': 4}", SET ("AcrossServers", "ost", G100, "'scale': 5"),
      0, "[" STORAGE ("a", "80530636800") ", " STORAGE ("b", G25) "]",
      NULL, NULL, "ost " G25 " a:3 b:1" },
    // the scheduler has set aside 25 GiB per node: 75 and 25, so the same
    { "{'a': 3, 'b': 1}", SET ("AcrossServers", "ost", G100, "'scale': 5"),
      0, NULL, NULL,
      "[{'type': 'slot', 'count': 4, 'with': [{'type': 'node', 'count': 1},"
      " {'type': 'ssd', 'count': 25}]}]", "ost " G25 " a:3 b:1" },
    // 100 on each: the first set has all of that on a
    { "{'a': 1, 'b': 1}", SET ("AcrossServers", "ost", G100, "'scale': 1")
      ", " SET ("AcrossServers", "mdt", G100, "'scale': 1"), 0,
      "[" STORAGE ("a", G240) ", " STORAGE ("b", G100) "]", NULL,
      "[{'type': 'slot', 'count': 2, 'with': [{'type': 'node', 'count': 1},"
      " {'type': 'ssd', 'count': 100}]}]", "ost " G100 " a:1; mdt " G100 " b:1" },
    // chassis of 4 nodes with 50 each: one on each
    { "{'a': 4, 'b': 4}", SET ("AcrossServers", "ost", G100, "'scale': 5"),
      0, NULL, NULL,
      "[{'type': 'chassis', 'count': 2, 'with': [{'type': 'node',"
      " 'count': 4}, {'type': 'ssd', 'count': 50}]}]",
      "ost " G50 " a:1 b:1" },
    // less was set aside than is needed: what is really there decides
    { "{'a': 1, 'b': 1}", SET ("AcrossServers", "ost", G100, "'scale': 5"),
      0, NULL, NULL,
      "[{'type': 'slot', 'count': 2, 'with': [{'type': 'node', 'count': 1},"
      " {'type': 'ssd', 'count': 10}]}]", "ost " G50 " a:1 b:1" },

    /* labels and health */
    { "{'a': 2, 'b': 2}",
      SET ("AcrossServers", "ost", G100, "'labels': ['tier=fast']"), 0,
      "[" STORAGE_ ("a", G240, "Ready", IS_RABBIT) ", "
      STORAGE_ ("b", G240, "Ready", IS_RABBIT ", 'tier': 'fast'") "]",
      NULL, NULL, "ost " G100 " b:1" },
    { "{'a': 2, 'b': 2}", SET ("AcrossServers", "ost", G100, ""), 0,
      "[" STORAGE_ ("a", G240, "Offline", "") ", " STORAGE ("b", G240) "]",
      NULL, NULL, "ost " G100 " b:1" },
    { "{'a': 2, 'b': 2}", SET ("SingleServer", "mgt", G5, ""), 0,
      "[{'metadata': {'name': 'a'}}, " STORAGE ("b", G240) "]",
      NULL, NULL, "mgt " G5 " b:1" },
    { "{'a': 2, 'b': 2}", SET ("SingleServer", "mgt", G5, ""), 0,
      "[{'metadata': {'name': 'a'}, 'spec': {'state': 'Disabled'},"
      " 'status': {'status': 'Ready', 'capacity': " G240 "}}, "
      STORAGE ("b", G100) "]", NULL, NULL, "mgt " G5 " b:1" },

    /* exclusive colocation */
    // mgt and mdt have the same key: apart, though b has most nodes
    { "{'a': 2, 'b': 3}",
      SET ("AcrossServers", "mdt", G5, "'count': 1, " EXCLUSIVE ("k")) ", "
      SET ("SingleServer", "mgt", G5, EXCLUSIVE ("k")), 0,
      NULL, NULL, NULL, "mdt " G5 " b:1; mgt " G5 " a:1" },
    // different keys do not matter
    { "{'a': 2, 'b': 3}",
      SET ("AcrossServers", "mdt", G5, "'count': 1, " EXCLUSIVE ("k")) ", "
      SET ("SingleServer", "mgt", G5, EXCLUSIVE ("m")), 0,
      NULL, NULL, NULL, "mdt " G5 " b:1; mgt " G5 " b:1" },
    // nor do sets without a key
    { "{'a': 2, 'b': 3}",
      SET ("AcrossServers", "ost", G10, "'scale': 5") ", "
      SET ("SingleServer", "mgt", G5, EXCLUSIVE ("")), 0,
      NULL, NULL, NULL, "ost " G5 " a:1 b:1; mgt " G5 " b:1" },
    // a flexible set leaves a rabbit to the other: 2 of 3
    { "{'a': 1, 'b': 1, 'c': 1}",
      SET ("AcrossServers", "ost", G100, EXCLUSIVE ("k")) ", "
      SET ("AcrossServers", "mdt", G5, "'count': 1, " EXCLUSIVE ("k")), 0,
      NULL, NULL, NULL, "ost " G50 " b:1 c:1; mdt " G5 " a:1" },
    { "{'a': 1, 'b': 1, 'c': 1}",
      SET ("AcrossServers", "ost", G100, EXCLUSIVE ("k")) ", "
      SET ("AcrossServers", "mdt", G10, "'scale': 10, " EXCLUSIVE ("k")), 0,
      NULL, NULL, NULL, "ost " G50 " a:1 b:1; mdt " G10 " c:1" },
    // an exclusive set has one a rabbit, even at scale 10
    { "{'a': 4, 'b': 4}",
      SET ("AcrossServers", "ost", G100, "'scale': 10, " EXCLUSIVE ("k")),
      0, NULL, NULL, NULL, "ost " G50 " a:1 b:1" },

    /* Lustre of the template profile: 3 rabbits with 300, 200, 100 GiB;
     * ost one on each, 240 / 3 = 80; mgtmdt where most is left (220) */
    { "{'a': 16, 'b': 16, 'c': 16}",
      SET ("AcrossServers", "ost", G240, "'scale': 5") ", "
      SET ("AcrossServers", "mgtmdt", G5, "'count': 1"), 4,
      "[" STORAGE ("a", G100) ", " STORAGE ("b", "214748364800") ", "
      STORAGE ("c", "322122547200") "]", NULL, NULL,
      "ost 85899345920 a:1 b:1 c:1; mgtmdt " G5 " c:1" },
    // external MGS: only ost and mdt
    { "{'a': 16}", SET ("AcrossServers", "ost", G100, "") ", "
      SET ("AcrossServers", "mdt", G5, ""), 4, NULL, NULL, NULL,
      "ost " G100 " a:1; mdt " G5 " a:1" },
};

static const struct row impossible[] = {
    { "{'a': 2, 'b': 16}", SET ("PerCompute", "xfs", G10, ""), 0,
      "[" STORAGE ("a", G20) ", " STORAGE ("b", G50) "]", NULL, NULL,
      "16 x 10 GiB are needed on rabbit b, 50 GiB are left" },
    // 20 - 5 = 15
    { "{'a': 2}", SET ("PerCompute", "xfs", G10, ""), 0,
      "[" STORAGE ("a", G20) "]", "{'a': " G5 "}", NULL,
      "15 GiB are left" },
    { "{'a': 2}", SET ("PerCompute", "xfs", G10, ""), 0,
      "[" STORAGE ("a", G5) "]", "{'a': " G100 "}", NULL,
      "0 GiB are left" },
    { "{'a': 2}", SET ("PerCompute", "xfs", G10, ""), 0,
      "[" STORAGE_ ("a", G100, "Offline", "") "]", NULL, NULL,
      "rabbit a, which is not Ready" },
    { "{'a': 2}", SET ("PerServer", "xfs", G10, ""), 0, "[]", NULL, NULL,
      "rabbit a, which has no Storage object" },
    { "{'a': 2}", SET ("PerCompute", "xfs", G10, "'labels': ['x=y']"), 0,
      "[" STORAGE ("a", G100) "]", NULL, NULL, "lacks label x=y" },
    // each label of the list, and not the first alone
    { "{'a': 2}",
      SET ("PerCompute", "xfs", G10, "'labels': [" RABBIT ", 'x=y']"), 0,
      "[" STORAGE ("a", G100) "]", NULL, NULL, "lacks label x=y" },
    // one that has no labels has this neither
    { "{'a': 2}", SET ("PerCompute", "xfs", G10, "'labels': ['x=y']"), 0,
      "[{'metadata': {'name': 'a'}, 'spec': {'state': 'Enabled'},"
      " 'status': {'status': 'Ready', 'capacity': " G100 "}}]", NULL, NULL,
      "lacks label x=y" },
    // the label that all sets want is a label as any other
    { "{'a': 2}", SET ("PerCompute", "xfs", G10, "'labels': [" RABBIT "]"), 0,
      "[" STORAGE_ ("a", G100, "Ready",
                    "'dataworkflowservices.github.io/storage': 'Other'") "]",
      NULL, NULL, "lacks label dataworkflowservices.github.io/storage=Rabbit" },
    { "{'a': 2}", SET ("PerCompute", "xfs", G10, "'labels': [" RABBIT "]"), 0,
      "[" STORAGE_ ("a", G100, "Ready", "'tier': 'fast'") "]",
      NULL, NULL, "lacks label dataworkflowservices.github.io/storage=Rabbit" },
    // the value counts too, and the whole name
    { "{'a': 2}", SET ("PerCompute", "xfs", G10, "'labels': ['tier=slow']"),
      0, "[" STORAGE_ ("a", G100, "Ready", "'tier': 'slower', 'tie': 'slow'")
      "]", NULL, NULL, "lacks label tier=slow" },
    { "{'a': 2}", SET ("PerCompute", "xfs", G10, EXCLUSIVE ("k")), 0,
      NULL, NULL, NULL, "2 nodes of the job share rabbit a" },
    { "{'a': 1, 'b': 1}", SET ("SingleServer", "mgt", G100, ""), 0,
      "[" STORAGE ("a", G50) ", " STORAGE ("b", G50) "]", NULL, NULL,
      "1 allocation of 100 GiB on 2 of 2 rabbits: 0 fit" },
    { "{'a': 4, 'b': 4}", SET ("AcrossServers", "mdt", G25,
                               "'count': 5, " EXCLUSIVE ("k")), 0,
      NULL, NULL, NULL,
      "5 allocations of 5 GiB (exclusive, one a rabbit) on 2 of 2 rabbits:"
      " 2 fit" },
    { "{'a': 4, 'b': 4}",
      SET ("AcrossServers", "mdt", G5, "'count': 2, " EXCLUSIVE ("k")) ", "
      SET ("SingleServer", "mgt", G5, EXCLUSIVE ("k")), 0,
      NULL, NULL, NULL, "also exclusive 'k'" },
    { "{'a': 1, 'b': 1}", SET ("AcrossServers", "ost", G240, ""), 0,
      "[" STORAGE ("a", G50) ", " STORAGE ("b", G100) "]", NULL, NULL,
      "set ost" },
    { "{'a': 1}", SET ("AcrossServers", "ost", G10, "'labels': ['q=r']"), 0,
      "[" STORAGE ("a", G50) "]", NULL, NULL, "a lacks label q=r" },
};

static json_t *run (const struct row *row, dws_error_t *e)
{
    static char buf[4096];
    json_t *breakdowns;
    json_t *nodes = J (row->nodes);
    json_t *storages = J (row->storages);
    struct dws_bytes used = BYTES (row->used);
    json_t *resources = J (row->resources);
    struct dws_allocation_opts opts = {
        .min_gib = row->min_gib,
        .storages = storages,
        .used = &used,
        .resources = resources,
    };
    json_t *o;

    snprintf (buf, sizeof (buf), "[" BREAKDOWN ("w-0", "%s") "]", row->sets);
    breakdowns = J (buf);
    errno = 0;
    o = WITH_BREAKDOWNS (breakdowns, e,
                         dws_allocation_sets (bd, nodes, &opts, e));
    json_decref (resources);
    dws_bytes_clear (&used);
    json_decref (storages);
    json_decref (nodes);
    json_decref (breakdowns);
    return o;
}

static void test_table (void **state)
{
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        dws_error_t e = { "" };
        json_t *o = run (&table[i], &e);

        if (!o)
            fail_msg ("row %zu: %s", i, e.text);
        assert_string_equal (describe (o), table[i].want);
        json_decref (o);
    }
}

static void test_impossible (void **state)
{
    size_t n = sizeof (impossible) / sizeof (impossible[0]);

    for (size_t i = 0; i < n; i++) {
        dws_error_t e = { "" };
        json_t *o = run (&impossible[i], &e);

        if (o)
            fail_msg ("row %zu: got %s", i, describe (o));
        assert_true (errno == (strstr (e.text, "is not Ready")
                               || strstr (e.text, "is Disabled")
                               || strstr (e.text, "has no Storage")
                                   ? EHOSTDOWN : ENOSPC));
        assert_contains (e.text, "w-0, set ");
        assert_contains (e.text, impossible[i].want);
    }
}

/* Several breakdowns, of which one has no storage, share the room; the
 * Servers objects are named, and the order is kept.
 */
static void test_several (void **state)
{
    json_t *breakdowns = J (
        "[" BREAKDOWN_OF ("w-0", "'name': 's-0'",
                          SET ("PerCompute", "xfs", G10, "")) ","
        " {'status': {'ready': true, 'compute': {}}}, "
        BREAKDOWN_OF ("w-2", "'name': 's-2', 'namespace': 'other'",
                      SET ("SingleServer", "mgt", G5, "")) "]");
    json_t *nodes = J ("{'a': 2, 'b': 1}");
    json_t *storages = J ("[" STORAGE ("a", G25) ", " STORAGE ("b", G20)
                          "]");
    struct dws_allocation_opts opts = { .storages = storages };
    json_t *o = WITH_BREAKDOWNS (breakdowns, NULL,
                                 dws_allocation_sets (bd, nodes, &opts, NULL));

    // after 2 x 10 on a and 10 on b there are 5 and 10 left
    assert_json (o,
                 "[{'servers': {'name': 's-0', 'namespace': 'default'},"
                 "  'allocationSets': [{'label': 'xfs',"
                 "   'allocationSize': " G10 ", 'storage': ["
                 "   {'name': 'a', 'allocationCount': 2},"
                 "   {'name': 'b', 'allocationCount': 1}]}]},"
                 " {'servers': {'name': 's-2', 'namespace': 'other'},"
                 "  'allocationSets': [{'label': 'mgt',"
                 "   'allocationSize': " G5 ", 'storage': ["
                 "   {'name': 'b', 'allocationCount': 1}]}]}]");
    json_decref (o);
    json_decref (storages);
    json_decref (nodes);
    json_decref (breakdowns);
}

static void test_edges (void **state)
{
    json_t *breakdowns = J ("[" BREAKDOWN ("w-0", SET ("PerCompute", "xfs",
                                                       G10, "")) "]");
    json_t *none = J ("[]");
    json_t *nodes = J ("{'a': 0}");
    json_t *empty = J ("{}");
    struct dws_allocation_opts opts = { .min_gib = -1 };
    dws_error_t e;
    json_t *o;

    assert_null (WITH_BREAKDOWNS (breakdowns, &e,
                                  dws_allocation_sets (bd, nodes, NULL, &e)));
    assert_contains (e.text, "from 1 to 65536");
    assert_null (WITH_BREAKDOWNS (breakdowns, &e,
                                  dws_allocation_sets (bd, empty, NULL, &e)));
    assert_contains (e.text, "no node with a rabbit");
    assert_null (WITH_BREAKDOWNS (breakdowns, &e,
                                  dws_allocation_sets (bd, NULL, NULL, &e)));
    assert_null (WITH_BREAKDOWNS (breakdowns, &e,
                                  dws_allocation_sets (bd, empty, &opts, &e)));
    assert_contains (e.text, "out of range");
    o = WITH_BREAKDOWNS (none, &e, dws_allocation_sets (bd, empty, NULL, &e));
    assert_json (o, "[]");
    json_decref (o);
    o = WITH_BREAKDOWNS (NULL, &e, dws_allocation_sets (bd, NULL, NULL, &e));
    assert_json (o, "[]");
    json_decref (o);
    json_decref (empty);
    json_decref (nodes);
    json_decref (none);
    json_decref (breakdowns);
}

static void test_nodes (void **state)
{
    static const struct {
        const char *R;
        const char *want;     // an object, or part of the message
    } rows[] = {
        { "'a1'", "{'r1': 1}" },
        { "'b3,a[1-2]'", "{'r2': 1, 'r1': 2}" },
        { "'a1,a1'", "{'r1': 1}" },
        { "{'version': 1, 'execution': {'nodelist': ['a[1-2]', 'b3'],"
          " 'R_lite': []}}", "{'r1': 2, 'r2': 1}" },
        { "{'execution': {'nodelist': []}}", "{}" },
        /* nodes without a rabbit, and rabbits themselves, have no part in it */
        { "'c9'", "{}" },
        { "'a1,r1,c9,b3'", "{'r1': 1, 'r2': 1}" },
        { "'a[1'", "not a hostlist" },
        { "{}", "no execution.nodelist" },
        { "{'execution': {'nodelist': [5]}}", "not a hostlist" },
        { "null", "no execution.nodelist" },
        { "'a[0-1000000]'", "more than 65536 hosts" },
    };
    json_t *mapping = J (
        "{'computes': {'a1': 'r1', 'a2': 'r1', 'b3': 'r2'},"
        " 'rabbits': {'r1': {'capacity': 1, 'hostlist': 'a[1-2]'},"
        "             'r2': {'capacity': 1, 'hostlist': 'b3'}}}");
    struct dws_topology *topo = dws_topology_create (mapping, NULL);

    assert_non_null (topo);
    for (size_t i = 0; i < sizeof (rows) / sizeof (rows[0]); i++) {
        json_t *R = J (rows[i].R);
        dws_error_t e = { "" };
        json_t *o = dws_allocation_nodes (R, topo, &e);

        if (o)
            assert_json (o, rows[i].want);
        else
            assert_contains (e.text, rows[i].want);
        json_decref (o);
        json_decref (R);
    }
    dws_topology_destroy (topo);
    json_decref (mapping);
}

static void test_down (void **state)
{
    json_t *mapping = J (
        "{'computes': {'a1': 'r1', 'a2': 'r1', 'b3': 'r2', 'c4': 'r3'},"
        " 'rabbits': {'r1': {'capacity': 1, 'hostlist': 'a[1-2]'},"
        "             'r2': {'capacity': 1, 'hostlist': 'b3'},"
        "             'r3': {'capacity': 1, 'hostlist': 'c4'}}}");
    json_t *storages = J (
        "[{'metadata': {'name': 'r1'}, 'status': {'status': 'Offline'}},"
        " {'metadata': {'name': 'r2'}, 'status': {'status': 'Ready'}}]");
    struct dws_topology *topo = dws_topology_create (mapping, NULL);
    static const char *const rows[][2] = {
        { "a1,b3", "a1" }, { "b3,a2,login,r1,a1", "a[2,1]" }, { "b3", "" },
        { "c4", "c4" }, { "", "" },
    };
    dws_error_t e;
    char *s;

    for (size_t i = 0; i < sizeof (rows) / sizeof (rows[0]); i++) {
        assert_non_null (s = dws_allocation_down (rows[i][0], storages, topo,
                                                  &e));
        assert_string_equal (s, rows[i][1]);
        free (s);
    }
    assert_null (dws_allocation_down ("a[1", storages, topo, &e));
    assert_int_equal (errno, EINVAL);
    dws_topology_destroy (topo);
    json_decref (storages);
    json_decref (mapping);
}

static void check_reserved (json_t *R, const struct dws_topology *topo,
                            const char *want)
{
    struct dws_bytes reserved = { 0 };

    assert_int_equal (dws_reserved (R, topo, &reserved, NULL), 0);
    assert_bytes (&reserved, want);
    dws_bytes_clear (&reserved);
}

/* Fluxion gives whole ssds: two of 743 GiB next to a1 and a2, one next to
 * b3. The sets fit well into that, though the nodes are spread unevenly.
 */
static void test_reserved (void **state)
{
#define VERTEX(type, name, size, path) \
    "{'id': '1', 'metadata': {'type': '" type "', 'name': '" name "'," \
    " 'size': " size ", 'paths': {'containment': '" path "'}}}"
    json_t *mapping = J (
        "{'computes': {'a1': 'r1', 'a2': 'r1', 'b3': 'r2'},"
        " 'rabbits': {'r1': {'capacity': 1, 'hostlist': 'a[1-2]'},"
        "             'r2': {'capacity': 1, 'hostlist': 'b3'}}}");
    json_t *R = J (
        "{'version': 1, 'scheduling': {'graph': {'nodes': ["
        VERTEX ("ssd", "ssd4", "743", "/c/chassis0/ssd4") ", "
        VERTEX ("ssd", "ssd5", "743", "/c/chassis0/ssd5") ", "
        VERTEX ("core", "core0", "1", "/c/chassis0/a1/core0") ", "
        VERTEX ("node", "a1", "1", "/c/chassis0/a1") ", "
        VERTEX ("node", "a2", "1", "/c/chassis0/a2") ", "
        // Fluxion does not name it, as that is type and id
        "{'id': '1', 'metadata': {'type': 'node', 'paths':"
        " {'containment': '/c/chassis1/b3'}}}, "
        VERTEX ("ssd", "ssd9", "743", "/c/chassis1/ssd9") ", "
        VERTEX ("ssd", "ssd0", "743", "/c/chassis7/ssd0") ", "
        "{'id': '9'}, 5]}}}");
    json_t *none = J ("{'version': 1}");
    json_t *ones = J (
        "{'scheduling': {'graph': {'nodes': ["
        "{'metadata': {'type': 'ssd', 'paths': {'containment': '/c/x/ssd0'}}}, "
        "{'metadata': {'type': 'ssd', 'paths': {'containment': '/c/x/ssd1'}}}, "
        "{'metadata': {'type': 'node', 'paths': {'containment': '/c/x/b3'}}}"
        "]}}}");
    json_t *counted = J ("{'scheduling': {'writer': 'fluxion:jgf_shorthand',"
                         " 'rabbits': {'r1': 3, 'r2': -1, 'r3': 'x'}}}");
    json_t *nodes = J ("{'r1': 2, 'r2': 1}");
    json_t *breakdowns = J ("[" BREAKDOWN ("w-0", SET ("AcrossServers",
                                                       "ost", G100, ""))
                            "]");
    json_t *resources = J ("[{'type': 'slot', 'count': 3, 'with': ["
                           " {'type': 'node', 'count': 1},"
                           " {'type': 'ssd', 'count': 34}]}]");
    struct dws_topology *topo = dws_topology_create (mapping, NULL);
    struct dws_allocation_opts opts = { .resources = resources };
    struct dws_bytes reserved = { 0 };
    json_t *o;

    assert_non_null (topo);
    // 2 * 743 << 30 and 743 << 30
    check_reserved (R, topo, "{'r1': 1595580350464, 'r2': 797790175232}");
    o = dws_reserved_ssds (R, NULL);
    assert_json (o, "{'/c/chassis0/ssd4': true, '/c/chassis0/ssd5': true,"
                    " '/c/chassis1/ssd9': true, '/c/chassis7/ssd0': true}");
    json_decref (o);
    o = dws_reserved_ssds (none, NULL);
    assert_json (o, "{}");
    json_decref (o);
    check_reserved (counted, topo, "{'r1': 3221225472}");
    json_decref (counted);
    // 34 GiB on r2 do not take a half of 100, but the ssd does
    o = WITH_BREAKDOWNS (breakdowns, NULL,
                         dws_allocation_sets (bd, nodes, &opts, NULL));
    assert_string_equal (describe (o), "ost 35791394134 r1:2 r2:1");
    json_decref (o);
    assert_int_equal (dws_reserved (R, topo, &reserved, NULL), 0);
    opts.reserved = &reserved;
    o = WITH_BREAKDOWNS (breakdowns, NULL,
                         dws_allocation_sets (bd, nodes, &opts, NULL));
    assert_string_equal (describe (o), "ost " G50 " r1:1 r2:1");
    json_decref (o);
    dws_bytes_clear (&reserved);
    check_reserved (none, topo, "{}");
    // a size of 1 is left out
    check_reserved (ones, topo, "{'r2': 2147483648}");
    json_decref (ones);
    dws_topology_destroy (topo);
    json_decref (resources);
    json_decref (breakdowns);
    json_decref (nodes);
    json_decref (none);
    json_decref (R);
    json_decref (mapping);
}

static void test_rabbits (void **state)
{
    json_t *nodes = J ("{'r2': 1, 'r1': 4, 'x': 1}");
    char *s = dws_allocation_rabbits (nodes, NULL, NULL);
    struct dws_bytes bytes = BYTES ("{'r1': 5}");

    assert_string_equal (s, "r[1-2],x");
    free (s);
    json_decref (nodes);
    // of others those that hold something
    nodes = J ("{'r2': 1, 'r1': 0, 'x': 0}");
    s = dws_allocation_rabbits (nodes, &bytes, NULL);
    assert_string_equal (s, "r[1-2]");
    free (s);
    dws_bytes_clear (&bytes);
    json_decref (nodes);
    s = dws_allocation_rabbits (NULL, NULL, NULL);
    assert_string_equal (s, "");
    free (s);
}

/* A Storage of 18 drives of 2 TiB, that say more than its capacity does.
 */
static json_t *make_drives (const char *name)
{
    json_t *devices = json_array ();

    for (int i = 0; i < 18; i++)
        json_array_append_new (devices, json_pack ("{s:s s:I}",
                                                   "status", "Ready",
                                                   "capacity",
                                                   (json_int_t)1 << 41));
    return json_pack ("{s:{s:s} s:{s:s s:i s:o}}",
                      "metadata", "name", name,
                      "status",
                        "status", "Ready",
                        "capacity", 1,
                        "devices", devices);
}

/* What is asked of a rabbit is what its drives can make of it, to the byte:
 * 16 x 2 TiB of 18, less what others have, in steps of 64 KiB.
 */
static void test_drives (void **state)
{
#define T32 "35184372088832"
    static const struct {
        const char *set;
        json_int_t used;
        const char *want;     // NULL: does not fit
    } table[] = {
        { SET ("PerCompute", "xfs", T32, ""), 0, "xfs " T32 " r1:1" },
        { SET ("PerCompute", "xfs", "35184372088833", ""), 0, NULL },
        { SET ("PerCompute", "xfs", T32, ""), 65536, NULL },
        { SET ("PerCompute", "xfs", "35184372023296", ""), 65536,
          "xfs 35184372023296 r1:1" },
        { SET ("PerCompute", "xfs", "35184372023297", ""), 65536, NULL },
        // 15 in one pool, and 15 pools that are a bit larger each
        { SET ("AcrossServers", "xfs", "35184372088830", "'count': 15"), 0,
          "xfs 2345624805922 r1:15" },
        { SET ("AcrossServers", "ost", "35184372088830", "'count': 15"), 0,
          NULL },
        { SET ("AcrossServers", "ost", T32, "'count': 16"), 0,
          "ost 2199023255552 r1:16" },
    };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *nodes = J ("{'r1': 1}");
        json_t *breakdowns = json_pack ("[{s:{s:s} s:{s:b s:{s:{s:s} s:[o]}}}]",
                                        "metadata", "name", "w-0",
                                        "status",
                                          "ready", 1,
                                          "storage",
                                            "reference", "name", "w-0",
                                            "allocationSets",
                                            J (table[i].set));
        json_t *storages = json_pack ("[o]", make_drives ("r1"));
        struct dws_bytes used = { 0 };
        struct dws_allocation_opts opts = { .storages = storages,
                                            .used = &used };
        dws_error_t e = { "" };
        json_t *o;

        dws_bytes_add (&used, "r1", table[i].used);
        o = WITH_BREAKDOWNS (breakdowns, &e,
                             dws_allocation_sets (bd, nodes, &opts, &e));
        if (o && (!table[i].want || strcmp (describe (o), table[i].want)))
            fail_msg ("row %zu: %s", i, describe (o));
        if (!o && (table[i].want || errno != ENOSPC))
            fail_msg ("row %zu: %s", i, e.text);
        json_decref (o);
        dws_bytes_clear (&used);
        json_decref (storages);
        json_decref (breakdowns);
        json_decref (nodes);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_table),
        cmocka_unit_test (test_impossible),
        cmocka_unit_test (test_several),
        cmocka_unit_test (test_edges),
        cmocka_unit_test (test_nodes),
        cmocka_unit_test (test_down),
        cmocka_unit_test (test_reserved),
        cmocka_unit_test (test_drives),
        cmocka_unit_test (test_rabbits),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

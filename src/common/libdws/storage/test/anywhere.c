/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of allocation.c for storage that may lie on any rabbits. Expected
 * numbers are worked out by hand, the arithmetic stands beside them.
 */

#include "libdws/storage/allocation.h"
#include "libdws/storage/test/sets.h"
#include "libdws/storage/test/with.h"

/* Storage that is not bound to nodes, on any rabbits: 0 of the job's nodes.
 */
#define THREE "[" STORAGE ("a", G40) ", " STORAGE ("b", G50) ", " \
    STORAGE ("c", G100) "]"
#define OST(gib, constraints) SET ("AcrossServers", "ost", gib, constraints)
#define MGT SET ("AcrossServers", "mgtmdt", G5, \
    "'count': 1, " EXCLUSIVE ("lustre-mgt"))

static void test_anywhere (void **state)
{
    static const struct {
        const char *nodes;
        const char *sets;
        const char *storages;
        const char *used;
        const char *rivals;
        bool ever;
        const char *want;     // or, if it must fail, part of the message
        int errnum;
    } rows[] = {
        // what fits next to the job stays there, all of it
        { "{'a': 1, 'b': 0, 'c': 0}", OST (G10, "'scale': 5") ", " MGT, THREE,
          NULL, NULL, false, "ost " G10 " a:1; mgtmdt " G5 " a:1", 0 },
        // nothing left there: where most is
        { "{'a': 1, 'b': 0, 'c': 0}", OST (G10, ""), THREE, "{'a': " G40 "}",
          NULL, false, "ost " G10 " c:1", 0 },
        // larger than its own, and than any: 2 x 60 do not fit, 3 x 40 do
        { "{'a': 1, 'b': 0, 'c': 0}", OST ("128849018880", ""), THREE, NULL,
          NULL, false, "ost " G40 " a:1 b:1 c:1", 0 },
        // uneven: 180 = 6 x 30: 1 + 1 + 3 are 5; 9 x 20: 2 + 2 + 5
        { "{'a': 1, 'b': 0, 'c': 0}", OST ("193273528320", ""), THREE, NULL,
          NULL, false, "ost " G20 " a:2 b:2 c:5", 0 },
        // one for each node as long as these fit
        { "{'a': 2, 'b': 2, 'c': 0}", OST (G40, "'scale': 10"), THREE, NULL,
          NULL, false, "ost " G10 " a:2 b:2", 0 },
        { "{'a': 1, 'b': 0, 'c': 0}", OST ("268435456000", ""), THREE, NULL,
          NULL, false, "250 GiB are needed, in allocations of one size; 3 of 3"
          " rabbits can be used for it and have 190 GiB left", ENOSPC },
        // a key that another has next to it
        { "{'a': 1, 'b': 0, 'c': 0}", OST (G10, "") ", " MGT, THREE, NULL,
          "[{'servers': {'name': 'x', 'namespace': 'default'}, 'holder': 'X',"
          " 'rabbits': {'a': {'lustre-mgt': true}}}]", false,
          "ost " G10 " a:1; mgtmdt " G5 " c:1", 0 },
        // one that is down is passed by, next to the job as well
        { "{'a': 1, 'b': 0, 'c': 0}", OST (G10, ""),
          "[" STORAGE_ ("a", G40, "Offline", IS_RABBIT) ", "
          STORAGE ("b", G50) ", " STORAGE ("c", G100) "]", NULL, NULL, false,
          "ost " G10 " c:1", 0 },
        // for what can never be it counts, and what is taken does not
        { "{'a': 0, 'b': 0, 'c': 0}", OST ("128849018880", ""),
          "[" STORAGE_ ("a", G40, "Offline", IS_RABBIT) ", "
          STORAGE ("b", G50) ", " STORAGE ("c", G100) "]", "{'c': " G100 "}",
          NULL, true, "ost " G40 " a:1 b:1 c:1", 0 },
        { "{'a': 0, 'b': 0, 'c': 0}", OST ("128849018880", ""),
          "[" STORAGE_ ("a", G40, "Offline", IS_RABBIT) ", "
          STORAGE ("b", G50) ", " STORAGE ("c", G100) "]", "{'c': " G100 "}",
          NULL, false, "2 of 3 rabbits can be used for it and have 50 GiB",
          ENOSPC },
        // by labels
        { "{'a': 1, 'b': 0, 'c': 0}", OST (G10, "'labels': ['fast=yes']"),
          "[" STORAGE ("a", G40) ", "
          STORAGE_ ("b", G50, "Ready", IS_RABBIT ", 'fast': 'yes'") ", "
          STORAGE ("c", G100) "]", NULL, NULL, false, "ost " G10 " b:1", 0 },
        // what is bound to nodes is not anywhere
        { "{'a': 2, 'b': 0, 'c': 0}", SET ("PerCompute", "xfs", G10, "") ", "
          OST (G40, ""), THREE, NULL, NULL, false,
          "xfs " G10 " a:2; ost " G40 " c:1", 0 },
        { "{'a': 1, 'b': 0, 'c': 0}", SET ("PerServer", "gfs2", G50, ""),
          THREE, NULL, NULL, false, "needed on rabbit a, 40 GiB are left",
          ENOSPC },
        // a job on nodes without a rabbit
        { "{'b': 0, 'c': 0}", SET ("SingleServer", "mgt", G5, ""), THREE,
          NULL, NULL, false, "mgt " G5 " c:1", 0 },
    };

    for (size_t i = 0; i < sizeof (rows) / sizeof (rows[0]); i++) {
        char text[4096];
        json_t *nodes = J (rows[i].nodes);
        json_t *storages = J (rows[i].storages);
        struct dws_bytes used = BYTES (rows[i].used);
        json_t *rivals = rows[i].rivals ? J (rows[i].rivals) : NULL;
        struct dws_allocation_opts opts = {
            .storages = storages,
            .used = &used,
            .rivals = rivals,
            .anywhere = true,
            .ever = rows[i].ever,
        };
        dws_error_t e = { "" };
        json_t *breakdowns;
        json_t *o;

        snprintf (text, sizeof (text), "[" BREAKDOWN ("w-0", "%s") "]",
                  rows[i].sets);
        breakdowns = J (text);
        errno = 0;
        o = WITH_BREAKDOWNS (breakdowns, &e,
                             dws_allocation_sets (bd, nodes, &opts, &e));
        if (!o && !rows[i].errnum)
            fail_msg ("row %zu: %s", i, e.text);
        if (o && (rows[i].errnum || strcmp (describe (o), rows[i].want)))
            fail_msg ("row %zu: %s", i, describe (o));
        if (!o) {
            assert_int_equal (errno, rows[i].errnum);
            assert_contains (e.text, rows[i].want);
        }
        json_decref (o);
        json_decref (breakdowns);
        json_decref (rivals);
        dws_bytes_clear (&used);
        json_decref (storages);
        json_decref (nodes);
    }
}

static bool unbound (json_t *objects)
{
    struct dws_breakdowns *breakdowns = dws_breakdowns_create (objects, NULL);
    bool result = dws_allocation_unbound (breakdowns);

    assert_non_null (breakdowns);
    dws_breakdowns_destroy (breakdowns);
    return result;
}

/* The rabbits that there are besides the job's.
 */
static void test_others (void **state)
{
    json_t *mapping = J ("{'computes': {'n1': 'a'}, 'rabbits': {"
                         " 'a': {'capacity': 1, 'hostlist': 'n1'},"
                         " 'b': {'capacity': 1, 'hostlist': ''},"
                         " 'c': {'capacity': 1, 'hostlist': ''}}}");
    struct dws_topology *topo = dws_topology_create (mapping, NULL);
    json_t *nodes = J ("{'a': 1}");
    json_t *without = J ("{'a': true, 'b': true}");
    json_t *across = J ("[" BREAKDOWN ("w-0", SET ("SingleServer", "mgt", G5,
                                                   "")) "]");
    json_t *bound = J ("[" BREAKDOWN ("w-0", SET ("PerServer", "gfs2", G5,
                                                  "")) "]");

    assert_non_null (topo);
    assert_int_equal (dws_allocation_anywhere (nodes, topo, without, NULL), 0);
    assert_json (nodes, "{'a': 1, 'c': 0}");
    assert_true (unbound (across));
    assert_false (unbound (bound));
    assert_false (dws_allocation_unbound (NULL));
    json_decref (bound);
    json_decref (across);
    json_decref (without);
    json_decref (nodes);
    dws_topology_destroy (topo);
    json_decref (mapping);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_anywhere),
        cmocka_unit_test (test_others),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of growth.c and grow.c. Sizes are GiB << 30.
 */

#include "libdws/directive/command.h"
#include "libdws/storage/allocation.h"
#include "libdws/storage/growth.h"
#include "libdws/test/util.h"

#define GIB (INT64_C (1) << 30)

#define SET(strategy, label, bytes) \
    "{'allocationStrategy': 'Allocate" strategy "', 'label': '" label "'," \
    " 'minimumCapacity': " bytes "}"

#define BREAKDOWN(name, sets) \
    "{'kind': 'DirectiveBreakdown', 'metadata': {'name': '" name "'}," \
    " 'status': {'ready': true, 'storage': {'lifetime': 'job'," \
    " 'reference': {'kind': 'Servers', 'name': '" name "'," \
    " 'namespace': 'default'}, 'allocationSets': [" sets "]}}}"

#define STORAGE(name, bytes) \
    "{'metadata': {'name': '" name "'}, 'spec': {'state': 'Enabled'}," \
    " 'status': {'capacity': " bytes ", 'status': 'Ready'}}"

#define G5 "5368709120"
#define G10 "10737418240"
#define G20 "21474836480"
#define G30 "32212254720"
#define G40 "42949672960"
#define G100 "107374182400"

struct row {
    const char *breakdowns;
    const char *ranges;
    const char *used;
    const char *promised;
    const char *most;
    const char *sizes;        // GiB of each set
    const char *bytes;        // GiB of each rabbit
};

#define XFS(name) BREAKDOWN (name, SET ("PerCompute", "xfs", G10))
#define UP_TO(bytes) "[[" G10 ", " bytes "]]"

/* Rabbits a and b of 100 GiB, with two nodes of the job and one. */
static const struct row table[] = {
    /* two of 40 fit on a */
    { XFS ("wf-0"), UP_TO (G40), NULL, NULL, NULL, "40", "80 40" },
    /* a has 50 left for two */
    { XFS ("wf-0"), UP_TO (G40), "{'a': 53687091200}", NULL, NULL,
      "25", "50 25" },
    /* others have been promised 30 of that */
    { XFS ("wf-0"), UP_TO (G40), "{'a': 53687091200}", "{'a': " G30 "}", NULL,
      "10", "20 10" },
    /* whole GiB: 45 / 2 = 22 */
    { XFS ("wf-0"), UP_TO (G40), NULL, "{'a': 59055800320}", NULL,
      "22", "44 22" },
    /* no more than this of each */
    { XFS ("wf-0"), UP_TO (G40), NULL, NULL, "{'a': " G100 ", 'b': " G30 "}",
      "30", "60 30" },
    /* where that does not name a rabbit, no more than the lower bound */
    { XFS ("wf-0"), UP_TO (G40), NULL, NULL, "{'a': " G100 "}",
      "10", "20 10" },
    /* nothing is left: the lower bound */
    { XFS ("wf-0"), UP_TO (G40), "{'a': 85899345920}", NULL, NULL,
      "10", "20 10" },
    /* a profile that takes twice what is asked for: 20 of 10 grow to 50 of 25 */
    { BREAKDOWN ("wf-0", SET ("PerCompute", "xfs", G20)),
      "[[" G10 ", 26843545600]]", NULL, NULL, NULL, "50", "100 50" },
    /* the bound is no whole GiB */
    { XFS ("wf-0"), "[[" G10 ", 10737418340]]", NULL, NULL, NULL,
      "10+100", "20 10" },
    /* Lustre: equal parts on both, and of its metadata nothing grows */
    { BREAKDOWN ("wf-0", SET ("AcrossServers", "ost", G20) ", "
                         SET ("SingleServer", "mgtmdt", G5)),
      "[[" G20 ", " G100 "]]", NULL, NULL, NULL, "50 5", "55 50" },
    { BREAKDOWN ("wf-0", SET ("AcrossServers", "ost", G20) ", "
                         SET ("SingleServer", "mgtmdt", G5)),
      "[[" G20 ", " G100 "]]", "{'b': 64424509440}", NULL, NULL,
      "40 5", "45 40" },
    /* the range is that of the other directive */
    { XFS ("wf-1"), UP_TO (G40), NULL, NULL, NULL, "10", "20 10" },
    { XFS ("wf"), UP_TO (G40), NULL, NULL, NULL, "10", "20 10" },
    /* two: both by the same part. 2 x (10 + 10) taken, 60 left, 30 for each of two
     * nodes: 3/4 of 20 and 20 */
    { XFS ("wf-0") ", " XFS ("wf-1"), "[[" G10 ", " G30 "], [" G10 ", " G30
      "]]", NULL, NULL, NULL, "25 25", "100 50" },
    /* one that does not grow, and one that takes what is left */
    { XFS ("wf-0") ", " XFS ("wf-1"), "[null, [" G10 ", " G100 "]]", NULL,
      NULL, NULL, "10 40", "100 50" },
};

static json_t *lay_out (const struct row *row)
{
    json_t *storages = J ("[" STORAGE ("a", G100) ", " STORAGE ("b", G100)
                          "]");
    json_t *nodes = J ("{'a': 2, 'b': 1}");
    char text[4096];
    json_t *breakdowns;
    struct dws_allocation_opts opts = {
        .storages = storages,
        .used = row->used ? J (row->used) : NULL,
        .ranges = J (row->ranges),
        .promised = row->promised ? J (row->promised) : NULL,
        .most = row->most ? J (row->most) : NULL,
    };
    dws_error_t error;
    json_t *sets;

    snprintf (text, sizeof (text), "[%s]", row->breakdowns);
    breakdowns = J (text);
    sets = dws_allocation_sets (breakdowns, nodes, &opts, &error);
    assert_non_null (sets);
    json_decref (breakdowns);
    json_decref (nodes);
    json_decref (storages);
    json_decref (opts.used);
    json_decref (opts.ranges);
    json_decref (opts.promised);
    json_decref (opts.most);
    return sets;
}

static void add (char *buf, size_t size, int64_t bytes)
{
    size_t n = strlen (buf);

    n += snprintf (buf + n, size - n, "%s%lld", n ? " " : "",
                   (long long)(bytes / GIB));
    if (bytes % GIB)
        snprintf (buf + n, size - n, "+%lld", (long long)(bytes % GIB));
}

static void test_grow (void **state)
{
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *sets = lay_out (&table[i]);
        json_t *bytes = dws_allocation_bytes (sets);
        char sizes[128] = "";
        char taken[128] = "";
        size_t j;
        size_t k;
        json_t *entry;
        json_t *set;

        json_array_foreach (sets, j, entry) {
            json_array_foreach (json_object_get (entry, "allocationSets"), k,
                                set)
                add (sizes, sizeof (sizes), json_integer_value (
                    json_object_get (set, "allocationSize")));
        }
        add (taken, sizeof (taken), json_integer_value (
            json_object_get (bytes, "a")) / GIB * GIB);
        add (taken, sizeof (taken), json_integer_value (
            json_object_get (bytes, "b")) / GIB * GIB);
        print_message ("row %zu\n", i);
        assert_string_equal (sizes, table[i].sizes);
        assert_string_equal (taken, table[i].bytes);
        json_decref (bytes);
        json_decref (sets);
    }
}

#define NODES "[{'type': 'node', 'count': 4, 'with': []}]"
#define JOBDW(type, capacity) \
    "'#DW jobdw type=" type " capacity=" capacity " name=aa'"

/* What the limits leave of the upper bound, in GiB.
 */
static void test_within (void **state)
{
    static const struct {
        const char *directives;   // as DWS has them
        const char *ranges;
        int64_t job;              // GiB, -1: no limit
        int64_t node;
        const char *maximums;
        const char *want;
    } tab[] = {
        { "[" JOBDW ("xfs", "10GiB") "]", UP_TO (G40), -1, -1, NULL, "40" },
        /* four nodes: 100 / 4 */
        { "[" JOBDW ("xfs", "10GiB") "]", UP_TO (G40), 100, -1, NULL, "25" },
        { "[" JOBDW ("xfs", "10GiB") "]", UP_TO (G40), -1, 20, NULL, "20" },
        { "[" JOBDW ("xfs", "10GiB") "]", UP_TO (G40), 100, 20, NULL, "20" },
        /* a limit that was lowered meanwhile takes nothing away */
        { "[" JOBDW ("xfs", "10GiB") "]", UP_TO (G40), 5, -1, NULL, "10" },
        { "[" JOBDW ("lustre", "10GiB") "]", UP_TO (G40), 25, -1, NULL, "25" },
        { "[" JOBDW ("lustre", "10GiB") "]", UP_TO (G40), -1, 5, NULL, "20" },
        /* GiB per node, by type */
        { "[" JOBDW ("xfs", "10GiB") "]", UP_TO (G40), -1, -1,
          "{'xfs': 30, 'gfs2': 12}", "30" },
        { "[" JOBDW ("gfs2", "10GiB") ", " JOBDW ("xfs", "10GiB") "]",
          "[null, [" G10 ", " G40 "]]", -1, 30, NULL, "20" },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        json_t *directives = J (tab[i].directives);
        json_t *ranges = J (tab[i].ranges);
        json_t *maximums = tab[i].maximums ? J (tab[i].maximums) : NULL;
        json_t *resources = J (NODES);
        struct dws_asked most = {
            .job = tab[i].job < 0 ? INT64_MAX : tab[i].job * GIB,
            .node = tab[i].node < 0 ? INT64_MAX : tab[i].node * GIB,
        };
        json_t *o = dws_growth_within (ranges, resources, directives, &most,
                                       maximums);
        json_t *last = json_array_get (o, json_array_size (o) - 1);
        char buf[64] = "";

        print_message ("row %zu\n", i);
        /* parts of 2^30 are rounded down */
        add (buf, sizeof (buf), (json_integer_value (json_array_get (last, 1))
                                 + 100) / GIB * GIB);
        assert_string_equal (buf, tab[i].want);
        json_decref (o);
        json_decref (resources);
        json_decref (maximums);
        json_decref (ranges);
        json_decref (directives);
    }
}

static void test_given (void **state)
{
    json_t *directives = J ("[" JOBDW ("xfs", "10GiB") ","
                            " '#DW jobdw type=lustre capacity=10GiB name=bb',"
                            " '#DW jobdw type=xfs capacity=1GiB name=cc',"
                            " '#DW jobdw type=raw capacity=1GiB name=dd']");
    json_t *ranges = J ("[[1, 2], [3, 4], null, [5, 6]]");
    json_t *servers = J (
        "{'spec': {'allocationSets': [{'label': 'ost', 'allocationSize': 7,"
        " 'storage': [{'name': 'a', 'allocationCount': 2},"
        "             {'name': 'b', 'allocationCount': 1}]},"
        " {'label': 'mgtmdt', 'allocationSize': 5,"
        "  'storage': [{'name': 'a', 'allocationCount': 1}]}]}}");
    json_t *sizes = dws_growth_sizes (servers);
    json_t *all = json_pack ("{s:O s:{s:{s:i s:i}}}", "fluxjob-1-1", sizes,
                             "fluxjob-1-0", "xfs", "size", 9, "count", 4);
    json_t *o = dws_growth_given (ranges, directives, all);

    assert_json (sizes, "{'ost': {'size': 7, 'count': 3},"
                        " 'mgtmdt': {'size': 5, 'count': 1}}");
    assert_json (o, "{'aa': {'type': 'xfs', 'least': 1, 'most': 2, 'bytes': 9},"
                    " 'bb': {'type': 'lustre', 'least': 3, 'most': 4,"
                    "        'bytes': 21},"
                    " 'dd': {'type': 'raw', 'least': 5, 'most': 6,"
                    "        'bytes': 0}}");
    json_decref (o);
    json_decref (all);
    json_decref (sizes);
    json_decref (servers);
    json_decref (ranges);
    json_decref (directives);
    o = dws_growth_given (NULL, NULL, NULL);
    assert_json (o, "{}");
    json_decref (o);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_grow),
        cmocka_unit_test (test_within),
        cmocka_unit_test (test_given),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

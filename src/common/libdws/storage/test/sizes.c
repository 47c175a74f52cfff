/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of sizes.c: what is foreseen, and what a layout takes then.
 */

#include "libdws/storage/allocation.h"
#include "libdws/storage/drives.h"
#include "libdws/storage/sizes.h"
#include "libdws/storage/test/resources.h"
#include "libdws/storage/test/with.h"
#include "libdws/test/util.h"

/* Of directives alone. In GiB. Of Lustre that NNF would make 4 GB: see below.
 */
static const struct {
    const char *resources;
    const char *directives;
    struct dws_sizes want;
} foreseen[] = {
    { "[" NODES (3) "]", "['#DW jobdw type=xfs capacity=2GiB name=a']",
      { { 6, 6 }, { 2, 2 } } },
    { "[" NODES (3) "]", "['#DW jobdw type=xfs capacity=8GiB name=a']",
      { { 24, 24 }, { 8, 8 } } },
    { "[{'type': 'slot', 'count': 2, 'with': [{'type': 'node', 'count': 2},"
      " {'type': 'ssd', 'count': 8}]}]",
      "['#DW jobdw type=gfs2 capacity=2GiB name=a',"
      " '#DW create_persistent type=raw capacity=1GiB name=b',"
      " '#DW persistentdw name=c', '#DW copy_in source=/a destination=/b']",
      { { 12, 12 }, { 3, 3 } } },
    // two targets of 4 GiB, on four nodes
    { "[" NODES (4) "]", "['#DW jobdw type=lustre capacity=8GiB name=a']",
      { { 8, 8 }, { 2, 2 } } },
    { "[" NODES (4) "]", "['#DW destroy_persistent name=a']", { { 0, 0 }, { 0, 0 } } },
    { "[{'type': 'core', 'count': 4}]",
      "['#DW jobdw type=xfs capacity=8GiB name=a']", { { 8, 8 }, { 8, 8 } } },
};

static void check_sizes (const struct dws_sizes *is,
                         const struct dws_sizes *want)
{
    assert_int_equal (is->job.asked, want->job.asked * GIB);
    assert_int_equal (is->job.taken, want->job.taken * GIB);
    assert_int_equal (is->node.taken, want->node.taken * GIB);
}

static void test_foreseen (void **state)
{
    for (size_t i = 0; i < sizeof (foreseen) / sizeof (foreseen[0]); i++) {
        json_t *resources = J (foreseen[i].resources);
        struct dws_directives *directives = D (foreseen[i].directives);
        struct dws_sizes sizes;

        dws_sizes_read (resources, directives, NULL, NULL, &sizes);
        check_sizes (&sizes, &foreseen[i].want);
        json_decref (resources);
        dws_directives_destroy (directives);
    }
}

/* NNF makes no target of Lustre smaller than 4 GB, in blocks of 64 KiB. All else is
 * as small as it is asked for.
 */
static void test_least (void **state)
{
    json_t *resources = J ("[" NODES (4) "]");
    struct dws_directives *lustre = D ("['#DW jobdw type=lustre capacity=2GiB name=a']");
    struct dws_directives *xfs = D ("['#DW jobdw type=xfs capacity=1MB name=a']");
    struct dws_sizes sizes;

    dws_sizes_read (resources, lustre, NULL, NULL, &sizes);
    assert_int_equal (sizes.job.asked, 2 * GIB);
    assert_int_equal (sizes.job.taken, 4000055296);
    assert_int_equal (sizes.node.taken, 4000055296 / 4);
    dws_sizes_read (resources, xfs, NULL, NULL, &sizes);
    assert_int_equal (sizes.job.asked, 4 * 1000000);
    assert_int_equal (sizes.job.taken, 4 * 16 * 65536);
    json_decref (resources);
    dws_directives_destroy (lustre);
    dws_directives_destroy (xfs);
}

static void test_much (void **state)
{
    json_t *resources = J ("[{'type': 'node', 'count': 2147483647}]");
    struct dws_directives *directives
        = D ("['#DW jobdw type=xfs capacity=7000000TiB name=a',"
             " '#DW jobdw type=xfs capacity=7000000TiB name=b']");
    struct dws_sizes sizes;

    dws_sizes_read (resources, directives, NULL, NULL, &sizes);
    assert_int_equal (sizes.job.asked, INT64_MAX);
    assert_int_equal (sizes.job.taken, INT64_MAX);
    json_decref (resources);
    dws_directives_destroy (directives);
}

static void test_text (void **state)
{
    struct dws_size size = { 500 * GIB, 500 * GIB };
    char buf[DWS_SIZE_TEXT_SIZE];

    assert_string_equal (dws_size_text (&size, "", buf), "500 GiB");
    assert_string_equal (dws_size_more (&size, " of rabbit storage", buf),
                         "500 GiB of rabbit storage is more than");
    size.taken += 300 << 20;
    assert_string_equal (dws_size_text (&size, "", buf),
                         "500 GiB, and 300 MiB of NNF's own");
    assert_string_equal (dws_size_more (&size, " per node", buf),
                         "500 GiB per node, and 300 MiB of NNF's own: more than");
    size.taken = 400 * GIB;     // a profile may make less
    assert_string_equal (dws_size_text (&size, "", buf), "500 GiB");
}

/* Breakdowns as NNF makes them of directives, with what a profile adds.
 */
static uint64_t seed = 42;

static int64_t draw (int64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (int64_t)(seed % (uint64_t)below);
}

static json_t *make_set (const char *strategy, const char *label, int64_t bytes,
                         json_int_t count)
{
    json_t *set = json_pack ("{s:s s:s s:I s:{s:[s]}}",
                             "allocationStrategy", strategy,
                             "label", label,
                             "minimumCapacity", (json_int_t)bytes,
                             "constraints",
                               "labels",
                               "dataworkflowservices.github.io/storage=Rabbit");

    if (count > 0)
        json_object_set_new (json_object_get (set, "constraints"), "count",
                             json_integer (count));
    return set;
}

static json_t *make_breakdown (int number, json_t *sets)
{
    char name[16];

    snprintf (name, sizeof (name), "w-%d", number);
    return json_pack ("{s:{s:s} s:{s:b s:{s:s s:{s:s s:s s:s} s:o}}}",
                      "metadata", "name", name,
                      "status",
                        "ready", 1,
                        "storage",
                          "lifetime", "job",
                          "reference",
                            "kind", "Servers",
                            "name", name,
                            "namespace", "default",
                          "allocationSets", sets);
}

/* A directive of some type, and its breakdown.
 */
static void add_storage (json_t *directives, json_t *breakdowns, int number)
{
    static const char *const types[] = { "xfs", "gfs2", "raw", "lustre" };
    const char *type = types[draw (4)];
    int64_t bytes = 1000 * (1 + draw (20000000));
    int64_t padding = draw (2) * (300 << 20) + draw (2) * (bytes / 29);
    json_t *sets = json_array ();

    json_array_append_new (directives, json_sprintf (
        "#DW %s type=%s capacity=%lldKB name=n%d",
        draw (2) ? "jobdw" : "create_persistent", type,
        (long long)bytes / 1000, number));
    bytes += padding;
    if (strcmp (type, "lustre") != 0)
        json_array_append_new (sets, make_set ("AllocatePerCompute", type,
                                               bytes, 0));
    else {
        json_array_append_new (sets, make_set ("AllocateAcrossServers", "ost",
                                               bytes, draw (3)));
        json_array_append_new (sets, make_set ("AllocateSingleServer", "mgtmdt",
                                               5 * GIB, 0));
    }
    json_array_append_new (breakdowns, make_breakdown (number, sets));
}

/* What Servers take that are written after a layout.
 */
static int64_t sum_taken (json_t *layout, size_t *allocations)
{
    int64_t sum = 0;
    json_t *entry;
    size_t index;

    json_array_foreach (layout, index, entry) {
        json_t *servers = dws_allocation_patch (entry);
        struct dws_bytes taken = { 0 };
        json_t *set;
        size_t i;

        dws_drives_taken (servers, &taken);
        sum += dws_bytes_sum (&taken, INT64_MAX);
        json_array_foreach (json_object_get (entry, "allocationSets"), i, set) {
            json_t *storage;
            size_t j;

            json_array_foreach (json_object_get (set, "storage"), j, storage)
                *allocations += json_integer_value (
                    json_object_get (storage, "allocationCount"));
        }
        dws_bytes_clear (&taken);
        json_decref (servers);
    }
    return sum;
}

/* Any mix: what is foreseen is what is taken, but for the rounding of each allocation
 * to 64 KiB, and never less. With the directives alone it is never more.
 */
static void check_mix (int nodes, json_t *per_rabbit)
{
    json_t *resources = json_pack ("[{s:s s:i}]", "type", "node", "count", nodes);
    json_t *texts = json_array ();
    struct dws_directives *directives;
    struct dws_breakdowns *bd;
    json_t *breakdowns = json_array ();
    struct dws_sizes least;
    struct dws_sizes sizes;
    size_t allocations = 0;
    dws_error_t e = { "" };
    json_t *layout;
    int64_t taken;

    for (int i = 0; i <= draw (3); i++)
        add_storage (texts, breakdowns, i);
    directives = dws_directives_read (texts);
    assert_non_null (directives);
    if (!(layout = WITH_BREAKDOWNS (breakdowns, &e,
                                    dws_allocation_sets (bd, per_rabbit, NULL,
                                                         &e))))
        fail_msg ("%s", e.text);
    taken = sum_taken (layout, &allocations);
    dws_sizes_read (resources, directives, NULL, NULL, &least);
    bd = dws_breakdowns_create (breakdowns, NULL);
    assert_non_null (bd);
    dws_sizes_read (resources, directives, bd, NULL, &sizes);
    dws_breakdowns_destroy (bd);
    assert_true (sizes.job.taken >= taken);
    assert_true (sizes.job.taken <= taken + (int64_t)(allocations + nodes) * 65536);
    assert_true (sizes.job.taken >= sizes.job.asked);
    assert_true (sizes.node.taken >= sizes.job.taken / nodes);
    assert_true (least.job.taken <= taken + (int64_t)(allocations + nodes) * 65536);
    json_decref (layout);
    json_decref (resources);
    json_decref (texts);
    dws_directives_destroy (directives);
    json_decref (breakdowns);
}

static void test_mix (void **state)
{
    for (int round = 0; round < 5000; round++) {
        json_t *per_rabbit = json_object ();
        int nodes = 0;

        for (int r = 0; r <= draw (3); r++) {
            char name[24];
            int n = 1 + (int)draw (4);

            snprintf (name, sizeof (name), "rabbit%d", r);
            json_object_set_new (per_rabbit, name, json_integer (n));
            nodes += n;
        }
        check_mix (nodes, per_rabbit);
        json_decref (per_rabbit);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_foreseen),
        cmocka_unit_test (test_least),
        cmocka_unit_test (test_much),
        cmocka_unit_test (test_text),
        cmocka_unit_test (test_mix),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

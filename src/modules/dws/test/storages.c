/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of storages.c: the largest rabbit is that of what was learnt last.
 */

#include "libdws/graph/topology.h"
#include "libdws/test/util.h"
#include "facts/storages.h"

#define GIB (1LL << 30)
#define SMALL "{'computes': {}, 'rabbits': {'r0': {'capacity': 1000," \
    " 'hostlist': ''}}}"
#define LARGE "{'computes': {}, 'rabbits': {'r0': {'capacity': 1000," \
    " 'hostlist': ''}, 'r1': {'capacity': 99999999999999, 'hostlist': ''}}}"

static struct dws_topology *topology (const char *mapping)
{
    json_t *o = J (mapping);
    struct dws_topology *topo = dws_topology_create (o, NULL);

    assert_non_null (topo);
    json_decref (o);
    return topo;
}

/* A Storage with 16 such drives, or with none of which we know.
 */
static json_t *storage (const char *name, int64_t drive)
{
    json_t *devices = json_array ();
    json_t *o;

    for (int i = 0; i < (drive ? 16 : 0); i++)
        json_array_append_new (devices, json_pack ("{s:s s:I}",
                                                   "status", "Ready",
                                                   "capacity",
                                                   (json_int_t)drive));
    assert_non_null (o = json_pack ("{s:{s:s} s:{s:o}}",
                                    "metadata", "name", name,
                                    "status", "devices", devices));
    return o;
}

static void learn (struct storages *storages, const char *name, int64_t drive,
                   bool deleted)
{
    json_t *o = storage (name, drive);

    assert_int_equal (storages_learn (storages, o, deleted), 0);
    json_decref (o);
}

static void assert_largest (struct storages *storages,
                            const struct dws_topology *topo, int64_t largest)
{
    assert_int_equal (storages_largest (storages, topo), largest);
}

static void test_largest (void **state)
{
    struct dws_topology *small = topology (SMALL);
    struct dws_topology *large = topology (LARGE);
    struct storages *storages = storages_create ();
    json_t *none = json_array ();

    assert_non_null (storages);
    assert_largest (storages, small, 1000);
    storages_remap (storages);
    assert_largest (storages, large, 99999999999999);
    learn (storages, "r1", 10 * GIB, false);
    assert_largest (storages, large, 16 * 10 * GIB);
    learn (storages, "r0", 10 * GIB, false);
    assert_largest (storages, large, 16 * 10 * GIB);
    learn (storages, "r1", 5 * GIB, false);
    assert_largest (storages, large, 16 * 5 * GIB);
    learn (storages, "r1", 0, true);
    assert_largest (storages, large, 99999999999999);
    storages_remap (storages);
    assert_largest (storages, small, 1000);
    assert_int_equal (storages_list (storages, none), 0);
    assert_largest (storages, small, 1000);
    json_decref (none);
    storages_destroy (storages);
    dws_topology_destroy (large);
    dws_topology_destroy (small);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_largest),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

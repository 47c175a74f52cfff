/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of drives.c, held against a rabbit that does as NNF does.
 */

#include "libdws/storage/drives.h"
#include "libdws/test/util.h"

#define DRIVES 18
#define BLOCK 4096
#define UNIT (16 * BLOCK)
#define TIB (INT64_C (1) << 40)

/* Storage.status of a rabbit with drives of these sizes; below zero: the drive
 * has failed, 0: it is missing.
 */
static json_t *make_status (const int64_t *sizes, size_t count)
{
    json_t *devices = json_array ();

    for (size_t i = 0; i < count; i++) {
        if (sizes[i] != 0)
            json_array_append_new (devices,
                                   json_pack ("{s:s s:I}",
                                              "status",
                                              sizes[i] > 0 ? "Ready" : "Failed",
                                              "capacity",
                                              (json_int_t)llabs (sizes[i])));
    }
    return json_pack ("{s:I s:o}", "capacity", (json_int_t)5,
                      "devices", devices);
}

static struct dws_drives read_drives (const int64_t *sizes, size_t count)
{
    json_t *status = make_status (sizes, count);
    struct dws_drives drives;

    dws_drives_read (status, &drives);
    json_decref (status);
    return drives;
}

static void fill (int64_t *sizes, size_t count, int64_t size)
{
    for (size_t i = 0; i < count; i++)
        sizes[i] = size;
}

static void test_wear (void **state)
{
    struct dws_drives drives;
    json_error_t error;
    json_t *status = json_loads (
        "{\"devices\": ["
        "{\"status\": \"Ready\", \"capacity\": 5, \"wearLevel\": 7},"
        "{\"status\": \"Ready\", \"capacity\": 5, \"wearLevel\": 103},"
        "{\"status\": \"Ready\", \"capacity\": 5},"
        "{\"status\": \"Failed\", \"capacity\": 5, \"wearLevel\": 120}]}",
        0, &error);

    assert_non_null (status);
    dws_drives_read (status, &drives);
    assert_int_equal (drives.wear, 103);
    json_decref (status);
}

/* Numbers as seen on the real controllers.
 */
static void test_observed (void **state)
{
    int64_t sizes[DRIVES];
    struct dws_drives drives;

    fill (sizes, DRIVES, 2 * TIB);
    drives = read_drives (sizes, DRIVES);
    assert_int_equal (drives.found, 18);
    assert_int_equal (drives.ready, 18);
    assert_int_equal (drives.wear, -1);
    assert_int_equal (drives.raw, 39582418599936);
    assert_int_equal (drives.width, 16);
    assert_int_equal (drives.usable, 35184372088832);
    assert_int_equal (dws_drives_pool (4000000000, 16), 4000055296);
    assert_int_equal (dws_drives_pool (10000314572800, 16), 10000314597376);
    assert_int_equal (39582418599936 - dws_drives_pool (10000314572800, 16),
                      29582104002560);
    assert_int_equal (dws_drives_room (&drives, 10000314597376),
                      25184057491456);
}

static void test_lost (void **state)
{
    int64_t sizes[DRIVES];
    struct dws_drives drives;

    fill (sizes, DRIVES, 2 * TIB);
    sizes[3] = -2 * TIB;
    sizes[4] = 0;
    drives = read_drives (sizes, DRIVES);
    assert_int_equal (drives.found, 17);
    assert_int_equal (drives.ready, 16);
    assert_int_equal (drives.raw, 32 * TIB);
    assert_int_equal (drives.usable, 32 * TIB);
    // two of them are smaller
    sizes[0] = sizes[1] = TIB + 1;
    drives = read_drives (sizes, DRIVES);
    assert_int_equal (drives.raw, 30 * TIB + 2);
    assert_int_equal (drives.usable, 16 * TIB);
    // fewer than a pool should have
    fill (sizes, DRIVES, 2 * TIB);
    fill (sizes, 4, -1);
    drives = read_drives (sizes, DRIVES);
    assert_int_equal (drives.ready, 14);
    assert_int_equal (drives.width, 14);
    assert_int_equal (drives.usable, 28 * TIB);
    assert_int_equal (dws_drives_room (&drives, 1), 28 * TIB - 14 * BLOCK);
    assert_int_equal (dws_drives_pool (1, 14), 14 * BLOCK);
    // and fewer than it must have
    sizes[17] = -1;
    drives = read_drives (sizes, DRIVES);
    assert_int_equal (drives.raw, 26 * TIB);
    assert_int_equal (drives.width, 0);
    assert_int_equal (drives.usable, 0);
    assert_int_equal (dws_drives_room (&drives, 0), 0);
}

/* Whoever lists no drives knows its size.
 */
static void test_no_list (void **state)
{
    const char *table[] = {
        NULL, "null", "{}", "{'capacity': -7}", "{'capacity': 70001}",
        "{'capacity': 70001, 'devices': []}",
    };
    const int64_t sizes[] = { 0, 0, 0, 0, 70001, 70001 };

    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *status = J (table[i]);
        struct dws_drives drives;

        dws_drives_read (status, &drives);
        assert_int_equal (drives.found, 0);
        assert_int_equal (drives.raw, sizes[i]);
        assert_int_equal (drives.usable, sizes[i]);
        assert_int_equal (dws_drives_room (&drives, 0), sizes[i]);
        assert_int_equal (dws_drives_room (&drives, sizes[i] + 1), 0);
        json_decref (status);
    }
}

static void test_take (void **state)
{
    // of one pool, and of two
    assert_int_equal (dws_drives_take ("xfs", UNIT + 1, 2, 16), 3 * UNIT);
    assert_int_equal (dws_drives_take ("raw", 1, 16, 16), UNIT);
    assert_int_equal (dws_drives_take ("gfs2", UNIT, 3, 16), 3 * UNIT);
    assert_int_equal (dws_drives_take ("ost", 4000000001, 3, 16),
                      3 * INT64_C (4000055296));
    // a target of less than 4 GB becomes one of 4 GB, all else is as it is asked for
    assert_int_equal (dws_drives_take ("mgt", 1, 2, 16),
                      2 * INT64_C (4000055296));
    assert_int_equal (dws_drives_take ("ost", 3999999999, 1, 16), 4000055296);
    assert_int_equal (dws_drives_least ("mdt"), 4000000000);
    assert_int_equal (dws_drives_least ("gfs2"), 0);
    assert_int_equal (dws_drives_take ("xfs", 0, 3, 16), 0);
    assert_int_equal (dws_drives_take ("xfs", 3, -1, 16), 0);
    assert_int_equal (dws_drives_take ("xfs", INT64_MAX, 2, 16), INT64_MAX);
    assert_int_equal (dws_drives_take ("ost", INT64_MAX - 1, 1, 16), INT64_MAX);
}

/* Servers
 */

#define ON(rabbit, count) \
    "{'name': '" rabbit "', 'allocationCount': " count "}"
#define SET(label, size, storage) \
    "{'label': '" label "', 'allocationSize': " size ", 'storage': [" storage "]}"
#define SERVERS(sets, status) \
    "{'spec': {'allocationSets': [" sets "]}, 'status': " status "}"
#define MADE(rabbit, size) "'" rabbit "': {'allocationSize': " size "}"

static const struct {
    const char *servers;
    const char *taken;
} table[] = {
    { "{}", "{}" },
    { "5", "{}" },
    { "{'spec': {'allocationSets': [{}, 'x', {'allocationSize': 7}]}}", "{}" },
    { SERVERS (SET ("xfs", "65537", "{'name': 'a'}, 7,"
                    "{'allocationCount': 1}"), "{}"), "{}" },
    { SERVERS (SET ("xfs", "65537", ON ("a", "2") "," ON ("b", "1")), "{}"),
      "{'a': 196608, 'b': 131072}" },
    // nothing is made yet, or only a part
    { SERVERS (SET ("xfs", "65537", ON ("a", "2") "," ON ("b", "1")),
               "{'ready': false, 'allocationSets': [{'storage': {"
               MADE ("a", "196608") "," MADE ("b", "0") "}}]}"),
      "{'a': 196608, 'b': 131072}" },
    // all is made, as it happens of fewer drives
    { SERVERS (SET ("xfs", "65537", ON ("a", "2") "," ON ("b", "1")),
               "{'ready': true, 'allocationSets': [{'storage': {"
               MADE ("a", "184320") "," MADE ("b", "131072") "}}]}"),
      "{'a': 184320, 'b': 131072}" },
    // b has given it back
    { SERVERS (SET ("xfs", "65537", ON ("a", "2") "," ON ("b", "1")),
               "{'ready': true, 'allocationSets': [{'storage': {"
               MADE ("a", "196608") "," MADE ("b", "0") "}}]}"),
      "{'a': 196608}" },
    // several sets, and a rabbit twice in one
    { SERVERS (SET ("ost", "4000000001", ON ("a", "1") "," ON ("a", "1")) ","
               SET ("mgtmdt", "1", ON ("a", "1")), "{}"),
      "{'a': 12000165888}" },
    { SERVERS (SET ("ost", "4000000001", ON ("a", "1") "," ON ("a", "1")) ","
               SET ("mgtmdt", "1", ON ("a", "1")),
               "{'ready': true, 'allocationSets': [{'storage': {"
               MADE ("a", "8000110592") "}}, {'storage': {"
               MADE ("a", "4000055296") "}}]}"),
      "{'a': 12000165888}" },
    { SERVERS (SET ("xfs", "9223372036854775807", ON ("a", "1")) ","
               SET ("xfs", "9223372036854775807", ON ("a", "1")), "{}"),
      "{'a': 9223372036854775807}" },
};

static void test_servers (void **state)
{
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *servers = J (table[i].servers);
        struct dws_bytes taken = { 0 };

        dws_drives_taken (servers, &taken);
        assert_bytes (&taken, table[i].taken);
        dws_bytes_clear (&taken);
        json_decref (servers);
    }
}

/* A rabbit that does as NNF does. Of drives with the same room it takes any.
 */

#define POOLS 40

struct rabbit {
    int64_t size[DRIVES];
    int64_t free[DRIVES];
    int64_t parts[POOLS][DRIVES];
    int64_t bytes[POOLS];       // 0: there is no such pool
    int64_t taken;
};

static uint64_t seed = 1;

static uint64_t draw (uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

/* Usable drives, those with the most room first.
 */
static int sort_drives (const struct rabbit *rabbit, int *order)
{
    int count = 0;

    for (int i = 0; i < DRIVES; i++) {
        if (rabbit->size[i] > 0)
            order[count++] = i;
    }
    for (int i = count - 1; i > 0; i--) {
        int j = (int)draw (i + 1);
        int swap = order[i];

        order[i] = order[j];
        order[j] = swap;
    }
    for (int i = 1; i < count; i++) {
        for (int j = i; j > 0 && rabbit->free[order[j]]
                                 > rabbit->free[order[j - 1]]; j--) {
            int swap = order[j];

            order[j] = order[j - 1];
            order[j - 1] = swap;
        }
    }
    return count;
}

static bool make_pool (struct rabbit *rabbit, int pool, int64_t size)
{
    int order[DRIVES];
    int count = sort_drives (rabbit, order);
    int64_t each;

    if (count > 16)
        count = 16;
    if (count < 14)
        return false;
    each = (size + count - 1) / count;
    each = (each + BLOCK - 1) / BLOCK * BLOCK;
    if (rabbit->free[order[count - 1]] < each)
        return false;
    memset (rabbit->parts[pool], 0, sizeof (rabbit->parts[pool]));
    for (int i = 0; i < count; i++) {
        rabbit->free[order[i]] -= each;
        rabbit->parts[pool][order[i]] = each;
    }
    rabbit->bytes[pool] = each * count;
    rabbit->taken += rabbit->bytes[pool];
    return true;
}

static void destroy_pool (struct rabbit *rabbit, int pool)
{
    for (int i = 0; i < DRIVES; i++)
        rabbit->free[i] += rabbit->parts[pool][i];
    rabbit->taken -= rabbit->bytes[pool];
    rabbit->bytes[pool] = 0;
}

static void make_rabbit (struct rabbit *rabbit, int lost, int64_t size,
                         bool alike)
{
    *rabbit = (struct rabbit){ 0 };
    for (int i = 0; i < DRIVES; i++) {
        rabbit->size[i] = i < lost ? -1
                        : alike ? size : size + (int64_t)draw (size / 8);
        rabbit->free[i] = rabbit->size[i] > 0 ? rabbit->size[i] : 0;
    }
}

static int64_t free_bytes (const struct rabbit *rabbit)
{
    int64_t sum = 0;

    for (int i = 0; i < DRIVES; i++)
        sum += rabbit->free[i];
    return sum;
}

/* An empty rabbit makes what is promised, and not a byte more.
 */
static void test_empty (void **state)
{
    for (int i = 0; i < 2000; i++) {
        struct rabbit rabbit;
        struct dws_drives drives;

        make_rabbit (&rabbit, (int)draw (6), BLOCK + draw (1 << 24), i % 2);
        drives = read_drives (rabbit.size, DRIVES);
        assert_int_equal (drives.raw, free_bytes (&rabbit));
        if (drives.width > 0) {
            assert_false (make_pool (&rabbit, 0, drives.usable + 1));
            assert_true (make_pool (&rabbit, 0, drives.usable));
            assert_int_equal (rabbit.taken, drives.usable);
        }
        else
            assert_false (make_pool (&rabbit, 0, 1));
    }
}

/* Whatever came and went before, a rabbit makes what is promised, and what is
 * taken is known to the byte.
 */
static void test_history (void **state)
{
    for (int round = 0; round < 600; round++) {
        struct rabbit rabbit;
        struct dws_drives drives;

        make_rabbit (&rabbit, (int)draw (5), (1 << 20) + draw (1 << 24),
                     round % 2);
        drives = read_drives (rabbit.size, DRIVES);
        for (int step = 0; step < 200; step++) {
            int pool = (int)draw (POOLS);
            int64_t room = dws_drives_room (&drives, rabbit.taken);
            int64_t size = room;

            if (rabbit.bytes[pool]) {
                destroy_pool (&rabbit, pool);
                continue;
            }
            if (room == 0)
                continue;
            if (draw (8) > 0)
                size = 1 + (int64_t)draw (draw (3) ? room / 6 + 1 : room);
            if (!make_pool (&rabbit, pool, size))
                fail_msg ("round %d, step %d: %lld of %lld are refused", round,
                          step, (long long)size, (long long)room);
            assert_int_equal (rabbit.bytes[pool],
                              dws_drives_pool (size, drives.width));
            assert_int_equal (rabbit.taken + free_bytes (&rabbit), drives.raw);
        }
    }
}

/* With up to seven pools, made one after the other, no more can be promised.
 */
static void test_tight (void **state)
{
    for (int round = 0; round < 600; round++) {
        struct rabbit rabbit;
        struct dws_drives drives;
        int count = 1 + (int)draw (7);

        make_rabbit (&rabbit, 0, (1 << 20) + draw (1 << 24), true);
        drives = read_drives (rabbit.size, DRIVES);
        for (int pool = 0; pool < count; pool++) {
            int64_t room = dws_drives_room (&drives, rabbit.taken);

            assert_true (make_pool (&rabbit, pool, 1 + draw (room / 8)));
        }
        assert_false (make_pool (&rabbit, POOLS - 1,
                                 dws_drives_room (&drives, rabbit.taken) + 1));
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_observed),
        cmocka_unit_test (test_wear),
        cmocka_unit_test (test_lost),
        cmocka_unit_test (test_no_list),
        cmocka_unit_test (test_take),
        cmocka_unit_test (test_servers),
        cmocka_unit_test (test_empty),
        cmocka_unit_test (test_history),
        cmocka_unit_test (test_tight),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

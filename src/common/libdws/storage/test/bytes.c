/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of bytes.c.
 */

#include "libdws/storage/bytes.h"
#include "libdws/test/util.h"

static void test_entry_goes_with_its_bytes (void **state)
{
    struct dws_bytes map = { 0 };

    assert_int_equal (dws_bytes_get (NULL, "a"), 0);
    dws_bytes_add (&map, "a", 5);
    dws_bytes_add (&map, "a", -2);
    assert_int_equal (dws_bytes_get (&map, "a"), 3);
    dws_bytes_add (&map, "a", -3);
    dws_bytes_add (&map, "b", -1);
    dws_bytes_add (&map, "c", 0);
    assert_int_equal (map.count, 0);
    dws_bytes_clear (&map);
}

static void test_sums_stop (void **state)
{
    struct dws_bytes map = { 0 };

    dws_bytes_add (&map, "a", INT64_MAX - 1);
    dws_bytes_add (&map, "a", 5);
    assert_true (dws_bytes_get (&map, "a") == INT64_MAX);
    dws_bytes_add (&map, "b", 7);
    assert_true (dws_bytes_sum (&map, INT64_MAX) == INT64_MAX);
    assert_int_equal (dws_bytes_sum (&map, 100), 100);
    assert_int_equal (dws_bytes_sum (NULL, 100), 0);
    dws_bytes_clear (&map);
}

static void test_maps (void **state)
{
    struct dws_bytes a = BYTES ("{'x': 1, 'y': 2}");
    struct dws_bytes b = BYTES ("{'y': 2}");
    struct dws_bytes c = BYTES ("{'z': 3, 'y': 1}");
    struct dws_bytes sum = { 0 };

    assert_true (dws_bytes_add_excess (NULL, &a, &b));
    assert_false (dws_bytes_add_excess (NULL, &b, &a));
    assert_true (dws_bytes_add_excess (NULL, &b, NULL));
    assert_false (dws_bytes_add_excess (NULL, NULL, &a));
    assert_true (dws_bytes_add_excess (&sum, &a, &c));
    assert_true (dws_bytes_add_excess (&sum, &c, &a));
    assert_bytes (&sum, "{'x': 1, 'y': 1, 'z': 3}");
    dws_bytes_add_map (&a, &c, 1);
    assert_bytes (&a, "{'x': 1, 'y': 3, 'z': 3}");
    dws_bytes_add_map (&a, &b, -1);
    dws_bytes_add_map (&a, NULL, 1);
    assert_int_equal (dws_bytes_sum (&a, 100), 5);
    dws_bytes_clear (&a);
    dws_bytes_clear (&b);
    dws_bytes_clear (&c);
    dws_bytes_clear (&sum);
}

static void test_order (void **state)
{
    struct dws_bytes map = BYTES ("{'r10': 1, 'r2': 2, 'a': 3, 'r02': 4}");
    char *rabbits = dws_bytes_rabbits (&map);

    assert_string_equal (map.list[0].rabbit, "a");
    assert_string_equal (map.list[2].rabbit, "r10");
    assert_string_equal (rabbits, "a,r[2,02,10]");
    free (rabbits);
    dws_bytes_clear (&map);
    rabbits = dws_bytes_rabbits (NULL);
    assert_string_equal (rabbits, "");
    free (rabbits);
    assert_bytes (NULL, "{}");
}

/* What is no number of bytes adds nothing.
 */
static void test_decode (void **state)
{
    struct dws_bytes map = BYTES ("{'a': 1, 'b': 'x', 'c': -1, 'd': null, 'e': 1.5}");

    assert_bytes (&map, "{'a': 1}");
    dws_bytes_clear (&map);
    map = BYTES ("[1]");
    assert_int_equal (map.count, 0);
}

/* As an object with the same changes.
 */
static void test_random (void **state)
{
    struct dws_bytes map = { 0 };
    int64_t want[40] = { 0 };
    unsigned int seed = 7;
    char name[16];

    for (int i = 0; i < 20000; i++) {
        int r = rand_r (&seed) % 40;
        int64_t n = rand_r (&seed) % 100 - 50;

        snprintf (name, sizeof (name), "r%d", r);
        dws_bytes_add (&map, name, n);
        want[r] = want[r] + n > 0 ? want[r] + n : 0;
        assert_int_equal (dws_bytes_get (&map, name), want[r]);
    }
    for (int r = 0; r < 40; r++) {
        snprintf (name, sizeof (name), "r%d", r);
        assert_int_equal (dws_bytes_get (&map, name), want[r]);
    }
    for (size_t i = 1; i < map.count; i++)
        assert_true (strcmp (map.list[i - 1].rabbit, map.list[i].rabbit) < 0);
    dws_bytes_clear (&map);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_entry_goes_with_its_bytes),
        cmocka_unit_test (test_sums_stop),
        cmocka_unit_test (test_maps),
        cmocka_unit_test (test_order),
        cmocka_unit_test (test_decode),
        cmocka_unit_test (test_random),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

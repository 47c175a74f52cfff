/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of bytes.c.
 */

#include "libdws/storage/bytes.h"
#include "libdws/test/util.h"

static void test_entry_goes_with_its_bytes (void **state)
{
    json_t *map = json_object ();

    assert_int_equal (dws_bytes_get (NULL, "a"), 0);
    assert_int_equal (dws_bytes_add (map, "a", 5), 0);
    assert_int_equal (dws_bytes_add (map, "a", -2), 0);
    assert_int_equal (dws_bytes_get (map, "a"), 3);
    assert_int_equal (dws_bytes_add (map, "a", -3), 0);
    assert_int_equal (dws_bytes_add (map, "b", -1), 0);
    assert_int_equal (dws_bytes_add (map, "c", 0), 0);
    assert_int_equal (json_object_size (map), 0);
    json_decref (map);
}

static void test_sums_stop (void **state)
{
    json_t *map = json_object ();

    assert_int_equal (dws_bytes_add (map, "a", INT64_MAX - 1), 0);
    assert_int_equal (dws_bytes_add (map, "a", 5), 0);
    assert_true (dws_bytes_get (map, "a") == INT64_MAX);
    assert_int_equal (dws_bytes_add (map, "b", 7), 0);
    assert_true (dws_bytes_sum (map, INT64_MAX) == INT64_MAX);
    assert_int_equal (dws_bytes_sum (map, 100), 100);
    assert_int_equal (dws_bytes_sum (NULL, 100), 0);
    json_decref (map);
}

static void test_maps (void **state)
{
    json_t *a = json_pack ("{s:i s:i}", "x", 1, "y", 2);
    json_t *b = json_pack ("{s:i}", "y", 2);
    json_t *c = json_pack ("{s:i}", "z", 3);

    assert_true (dws_bytes_meet (a, b));
    assert_false (dws_bytes_meet (a, c));
    assert_false (dws_bytes_meet (NULL, a));
    dws_bytes_add_map (a, c, 1);
    assert_int_equal (dws_bytes_sum (a, 100), 6);
    dws_bytes_add_map (a, b, -1);
    assert_false (dws_bytes_meet (a, b));
    assert_int_equal (dws_bytes_sum (a, 100), 4);
    json_decref (a);
    json_decref (b);
    json_decref (c);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_entry_goes_with_its_bytes),
        cmocka_unit_test (test_sums_stop),
        cmocka_unit_test (test_maps),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of bounds.c.
 */

#include "libdws/test/util.h"
#include "libdws/util/bounds.h"

/* {"and": [{"and": [... {} ...]}]}
 */
static json_t *nested (int depth)
{
    json_t *o = json_object ();

    while (depth-- > 0)
        o = json_pack ("{s:[o]}", "and", o);
    return o;
}

/* {KEY: [VALUE, VALUE, ...]}
 */
static json_t *many (const char *key, const char *value, int count)
{
    json_t *list = json_array ();

    while (count-- > 0)
        json_array_append_new (list, json_string (value));
    return json_pack ("{s:o}", key, list);
}

/* Takes over 'o'. 'want' is NULL or part of the text.
 */
static void check (json_t *o, bool ours, const char *want)
{
    dws_error_t error = { "" };

    assert_int_equal (dws_bounds_check (o, "constraints", ours, &error),
                      want ? -1 : 0);
    if (want) {
        assert_int_equal (errno, EINVAL);
        assert_non_null (strstr (error.text, "constraints: "));
        assert_non_null (strstr (error.text, want));
    }
    json_decref (o);
}

static void test_absent (void **state)
{
    assert_int_equal (dws_bounds_check (NULL, "resources", false, NULL), 0);
}

static void test_depth (void **state)
{
    check (nested (0), false, NULL);
    check (nested (32), false, NULL);
    check (nested (33), false, "nested too deeply");
    check (nested (36), true, NULL);
    check (nested (37), true, "nested too deeply");
    check (nested (1000), true, "nested too deeply");
}

static void test_values (void **state)
{
    check (many ("properties", "a", 1000), false, NULL);
    check (many ("properties", "a", 1024), false, "more than 1024 values");
    check (many ("properties", "a", 1024), true, NULL);
    check (many ("properties", "a", 1100), true, "values");
    check (many ("hostlist", "a", 10000), false, NULL);
    check (many ("ranks", "1", 10000), false, NULL);
}

static void test_text (void **state)
{
    check (many ("ranks", "1234567", 9000), false, NULL);
    check (many ("ranks", "1234567", 9400), false, "more than 65536 bytes");
    check (many ("ranks", "1234567", 9400), true, NULL);
    check (many ("ranks", "1234567", 200000), true, "bytes");
    check (many ("ranks", "", 60000), false, NULL);
    check (many ("ranks", "", 70000), false, "more than 65536 bytes");
}

static void test_hosts (void **state)
{
    check (many ("hostlist", "a[0-9999]", 6), false, NULL);
    check (many ("hostlist", "a[0-9999]", 7), false, "more than 65536 hosts");
    check (many ("hostlist", "a[0-9999]", 7), true, NULL);
    check (many ("hostlist", "a[0-9999]", 14), true, "hosts");
    check (many ("hostlist", "a[0-99999999999]", 1), true, "hosts");
    check (many ("ranks", "0-4000000000", 1), false, NULL);
    check (json_pack ("{s:[{s:[s]}, {s:[s]}]}", "and",
                      "hostlist", "a[0-39999]", "hostlist", "b[0-39999]"),
           false, "hosts");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_absent),
        cmocka_unit_test (test_depth),
        cmocka_unit_test (test_values),
        cmocka_unit_test (test_text),
        cmocka_unit_test (test_hosts),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Tests of jsonscan.c.
 */

#include <errno.h>
#include <string.h>

#include "libdws/test/util.h"
#include "libdws/util/jsonscan.h"

static void assert_text (struct dws_text text, const char *s)
{
    if (!dws_text_is (text, s))
        fail_msg ("'%.*s' is not '%s'", (int)text.len, text.s ? text.s : "",
                  s);
}

static void test_object (void **state)
{
    static const char *const found[][2] = {
        { "a", "1" },
        { "b\\\"c", "\"}]\\\\\"" },
        { "", "[ {\"x\": \"]\"} , [] ]" },
        { "d", "null" },
        { "e", "{}" },
    };
    struct dws_text whole = dws_text (
        "{ \"a\" : 1, \"b\\\"c\":\"}]\\\\\",\n\"\":[ {\"x\": \"]\"} , [] ],"
        "\"d\":null ,\"e\":{}}");
    struct dws_text key;
    struct dws_text value;
    size_t at = 0;

    for (size_t i = 0; i < sizeof (found) / sizeof (found[0]); i++) {
        assert_int_equal (dws_text_next (whole, &at, &key, &value), 1);
        assert_text (key, found[i][0]);
        assert_text (value, found[i][1]);
    }
    assert_int_equal (dws_text_next (whole, &at, &key, &value), 0);
    assert_text (dws_text_find (whole, "d"), "null ,\"e\":{}}");
    assert_null (dws_text_find (whole, "x").s);
    assert_null (dws_text_find (dws_text ("[1]"), "x").s);
    assert_null (dws_text_find (dws_text ("{\"a\": "), "a").s);
    assert_null (dws_text_find (dws_text (NULL), "x").s);
}

static void test_array (void **state)
{
    struct dws_text key = dws_text ("x");
    struct dws_text value;
    size_t at = 0;

    assert_int_equal (dws_text_next (dws_text ("[1 ,-2.5e3]"), &at, &key,
                                     &value), 1);
    assert_null (key.s);
    assert_text (value, "1");
    assert_int_equal (dws_text_next (dws_text ("[1 ,-2.5e3]"), &at, NULL,
                                     &value), 1);
    assert_text (value, "-2.5e3");
    assert_int_equal (dws_text_next (dws_text ("[1 ,-2.5e3]"), &at, NULL,
                                     &value), 0);
    at = 0;
    assert_int_equal (dws_text_next (dws_text ("[ ]"), &at, NULL, &value), 0);
}

static void test_advance (void **state)
{
    struct dws_text rest = dws_text ("[ 1, [2] ] , 3");

    assert_int_equal (dws_text_advance (&rest, false), 1);
    assert_text (rest, "1, [2] ] , 3");
    rest.s += 1;
    rest.len -= 1;
    assert_int_equal (dws_text_advance (&rest, true), 1);
    assert_text (rest, "[2] ] , 3");
    rest.s += 3;
    rest.len -= 3;
    assert_int_equal (dws_text_advance (&rest, true), 0);
    assert_text (rest, " , 3");
    rest = dws_text ("{}");
    assert_int_equal (dws_text_advance (&rest, false), -1);
    assert_int_equal (errno, EINVAL);
    rest = dws_text ("");
    assert_int_equal (dws_text_advance (&rest, true), -1);
}

/* Whatever it is cut short to, nothing beyond is read: the copy ends there, which
 * sanitizers and valgrind watch.
 */
static void test_cut (void **state)
{
    const char *whole = "{\"a\\\\\":[{\"b\": \"c\\\"\"}, true], \"d\": 1}";
    struct dws_text value;

    for (size_t len = 0; len < strlen (whole); len++) {
        char *copy = memcpy (malloc (len + 1), whole, len);
        struct dws_text text = { copy, len };
        size_t at = 0;
        int rc;

        while ((rc = dws_text_next (text, &at, NULL, &value)) > 0)
            ;
        assert_int_equal (rc, -1);
        assert_int_equal (errno, EINVAL);
        free (copy);
    }
}

static void test_malformed (void **state)
{
    static const char *const texts[] = {
        "", "1", "\"x\"", "{1:2}", "{\"a\" 1}", "{\"a\":}", "[1 2]", "[,]",
        "{\"a\":1,}", "{\"a\":1 \"b\":2}", "[1,,2]",
    };

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        struct dws_text value;
        size_t at = 0;
        int rc;

        while ((rc = dws_text_next (dws_text (texts[i]), &at, NULL,
                                    &value)) > 0)
            ;
        assert_int_equal (rc, -1);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_object),
        cmocka_unit_test (test_array),
        cmocka_unit_test (test_advance),
        cmocka_unit_test (test_cut),
        cmocka_unit_test (test_malformed),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

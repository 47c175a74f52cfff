/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of error.c.
 */

#include "libdws/test/util.h"
#include "libdws/util/error.h"

static void test_basic (void **state)
{
    dws_error_t e;

    errno = 0;
    assert_int_equal (dws_error (&e, ENOENT, "no %s", "rabbit"), -1);
    assert_int_equal (errno, ENOENT);
    assert_string_equal (e.text, "no rabbit");
    assert_int_equal (dws_error (NULL, EINVAL, "nobody reads this"), -1);
    assert_int_equal (errno, EINVAL);
}

static void test_nested (void **state)
{
    dws_error_t e;

    dws_error (&e, EINVAL, "inner");
    dws_error (&e, EINVAL, "outer: %s", e.text);
    assert_string_equal (e.text, "outer: inner");
}

/* Words of users are in it.
 */
static void test_clean (void **state)
{
    dws_error_t e;

    dws_error (&e, EINVAL, "no '%s'", "a\n\033[1mb\xff");
    assert_string_equal (e.text, "no 'a \xef\xbf\xbd[1mb'");
}

/* A cut must not leave half a character behind.
 */
static void test_cut (void **state)
{
    dws_error_t e;
    char big[600];

    memset (big, 'x', sizeof (big));
    big[sizeof (big) - 1] = '\0';
    dws_error (&e, EINVAL, "%s", big);
    assert_int_equal (strlen (e.text), sizeof (e.text) - 1);

    // a two-byte character whose latter byte is cut off
    memcpy (big + sizeof (e.text) - 2, "\xc3\xa9", 2);
    dws_error (&e, EINVAL, "%s", big);
    assert_int_equal (strlen (e.text), sizeof (e.text) - 2);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_basic),
        cmocka_unit_test (test_nested),
        cmocka_unit_test (test_clean),
        cmocka_unit_test (test_cut),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Tests of jsontext.c.
 */

#include <errno.h>

#include "libdws/test/util.h"
#include "libdws/util/jsontext.h"

static void test_there_and_back (void **state)
{
    static const char *const texts[] = {
        "{\"a\":[1,2.5,true,null],\"b\":{\"c\":\"\\u0001 \xc3\xa9\"}}",
        "[]", "{}", "\"x\"", "7", "null",
    };
    char *text = NULL;

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        json_t *value = dws_jsontext_get (texts[i]);

        assert_non_null (value);
        assert_int_equal (dws_jsontext_set (&text, value), 0);
        assert_string_equal (text, texts[i]);
        json_decref (value);
    }
    assert_int_equal (dws_jsontext_set (&text, NULL), 0);
    assert_null (text);
}

static void test_no_json (void **state)
{
    static const char *const texts[] = { NULL, "", "{", "[1] x" };

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        errno = 0;
        assert_null (dws_jsontext_get (texts[i]));
        assert_int_equal (errno, EINVAL);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_there_and_back),
        cmocka_unit_test (test_no_json),
    };

    cmocka_set_message_output (CM_OUTPUT_TAP);
    return cmocka_run_group_tests (tests, NULL, NULL);
}

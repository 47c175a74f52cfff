/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Tests of jsonwrite.c: the text is that of json_dumps().
 */

#include <errno.h>
#include <math.h>

#include "libdws/test/util.h"
#include "libdws/util/jsonwrite.h"

static void check (json_t *value)
{
    char *expected = json_dumps (value, JSON_COMPACT | JSON_ENCODE_ANY);
    char *text = dws_json_write (value);

    assert_non_null (expected);
    assert_non_null (text);
    assert_string_equal (text, expected);
    free (text);
    free (expected);
    json_decref (value);
}

static void test_same_text (void **state)
{
    static const char *const texts[] = {
        "{'z': [1, -2, 0, 2.5, 1e100, true, false, null, 'x', {}, [], ''],"
        " 'a': {'b': {}}, '': 1, 'k\\u00e9y\\\\\\n': 2}",
        "[]", "{}", "[[[{}]]]",
        "'\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u007f \xc3\xa9 \\ud83d\\ude00'",
    };
    char large[5000];

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++)
        check (J (texts[i]));
    check (json_integer (9223372036854775807));
    check (json_integer (-9223372036854775807 - 1));
    check (json_real (0.1));
    check (json_true ());
    check (json_null ());
    check (json_stringn ("a\0b", 3));
    for (size_t n = 0; n < sizeof (large); n += 7) {
        memset (large, 'x', n);
        check (json_pack ("[s#, s#]", large, (int)n, large, (int)n));
    }
}

static void test_nothing (void **state)
{
    errno = 0;
    assert_null (dws_json_write (NULL));
    assert_int_equal (errno, EINVAL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_same_text),
        cmocka_unit_test (test_nothing),
    };

    cmocka_set_message_output (CM_OUTPUT_TAP);
    return cmocka_run_group_tests (tests, NULL, NULL);
}

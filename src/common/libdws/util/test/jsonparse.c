/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Tests of jsonparse.c: whatever the text, the values are those of json_loadb().
 */

#include <errno.h>
#include <string.h>

#include "libdws/test/util.h"
#include "libdws/util/jsonparse.h"

static void check (const char *text, size_t len)
{
    json_t *expected = json_loadb (text, len, JSON_DECODE_ANY, NULL);
    json_t *value;

    errno = 0;
    value = dws_json_parse (text, len);
    if (!expected != !value || (value && !json_equal (expected, value)))
        fail_msg ("'%.*s' is %s", (int)len, text,
                  value ? "another value" : expected ? "refused" : "taken");
    if (!value)
        assert_int_equal (errno, EINVAL);
    json_decref (value);
    json_decref (expected);
}

static const char *const texts[] = {
    "{\"a\":[1,-2,0,-0,10,true,false,null,\"x\",{},[],\"\"],\"\":{\"a\":{}}}",
    " {\t\"a\" :\n1 ,\r\"b\" : [ 1 , [ ] , { } ] } ",
    "{\"a\":1,\"a\":2}",
    "[123456789012345678,-123456789012345678,9223372036854775807]",
    "9223372036854775808", "-9223372036854775808",
    "1.5", "-1e3", "[1E-2,2.0]", "01", "-01", "-", "--1", "1-", "+1", ".5",
    "1.", "1e", "0x1", "NaN", "truE", "true1", "nul", "nulll",
    "\"\\u00e9\\n\\\"\\\\ \xc3\xa9 \\ud83d\\ude00\"", "\"\x7f\"",
    "\"\xc3\"", "\"\xff\"", "\"\n\"", "\"\\x\"", "\"\\ud800\"", "\"\\u0000\"",
    "\"\\", "\"a", "\"", "\"a\\\"",
    "{\"k\\u00e9\":1,\"k\xc3\xa9\":2}", "{\"k\\u0000\":1}", "{\"\xff\":1}",
    "{\"a long key, of more characters than there usually are in one, so that"
    " there is no place for it, and another way has to be found to keep it ok\":1}",
    "", " ", "{", "[", "}", "]", "{]", "[}", "[1", "[1,", "[1,]", "[,1]", "[1 2]",
    "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{,\"a\":1}",
    "{\"a\" 1}", "{a:1}", "{1:1}", "{\"a\":1 \"b\":2}", "{\"a\"", "[1:2]",
    "1 2", "[] x", "{}{}", "[1}", "{\"a\":1]", ":", ",", "[\"a\"\"b\"]",
};

static void test_same_values (void **state)
{
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++)
        check (texts[i], strlen (texts[i]));
    check ("[\0]", 3);
    check ("\"a\0b\"", 5);
    assert_null (dws_json_parse (NULL, 0));
    assert_int_equal (errno, EINVAL);
}

/* What is cut off anywhere, and each character replaced by others. The copy ends where
 * the text does, for ASan.
 */
static void test_broken (void **state)
{
    static const char others[] = "\"\\{}[],: 0-9ex\x01\x80";

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        size_t len = strlen (texts[i]);

        for (size_t n = 0; n < len; n++) {
            char *copy = malloc (len);

            assert_non_null (copy);
            memcpy (copy, texts[i], len);
            for (const char *c = others; *c; c++) {
                copy[n] = *c;
                check (copy, len);
            }
            free (copy);
            assert_non_null (copy = malloc (n + 1));
            memcpy (copy + 1, texts[i], n);
            check (copy + 1, n);
            free (copy);
        }
    }
}

static json_t *nested (size_t depth)
{
    char *text = malloc (2 * depth);
    json_t *value;

    assert_non_null (text);
    memset (text, '[', depth);
    memset (text + depth, ']', depth);
    value = dws_json_parse (text, 2 * depth);
    free (text);
    return value;
}

static void test_deep (void **state)
{
    json_t *value = nested (2000);

    assert_non_null (value);
    json_decref (value);
    errno = 0;
    assert_null (nested (100000));
    assert_int_equal (errno, EINVAL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_same_values),
        cmocka_unit_test (test_broken),
        cmocka_unit_test (test_deep),
    };

    cmocka_set_message_output (CM_OUTPUT_TAP);
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Tests of jsonparse.c: whatever the text, the values are those of json_loadb().
 */

#include <errno.h>
#include <string.h>

#include "libdws/test/util.h"
#include "libdws/util/jsonparse.h"
#include "texts.h"

static void check (const char *text, size_t len)
{
    json_t *expected = json_loadb (text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
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

static void test_same_values (void **state)
{
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++)
        check (texts[i], strlen (texts[i]));
    check ("[\0]", 3);
    check ("\"a\0b\"", 5);
    assert_null (dws_json_parse (NULL, 0));
    assert_int_equal (errno, EINVAL);
}

static void test_broken (void **state)
{
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++)
        break_text (texts[i], check);
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

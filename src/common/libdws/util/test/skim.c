/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Tests of skim.c.
 */

#include <errno.h>
#include <stdlib.h>

#include "libdws/test/util.h"
#include "libdws/util/skim.h"

/* Exactly as long as it is, for ASan to see what is read beyond its end.
 */
static int skim_text (const char *text, struct dws_skim *skim)
{
    size_t size = strlen (text);
    char *copy = malloc (size + 1);
    int rc;

    assert_non_null (copy);
    copy = realloc (copy, size ? size : 1);
    memcpy (copy, text, size);
    errno = 0;
    rc = dws_skim (copy, size, skim);
    free (copy);
    return rc;
}

static void check_span (const char *text, struct dws_span span,
                        const char *want)
{
    assert_int_equal (span.size, strlen (want));
    assert_memory_equal (text + span.at, want, span.size);
}

static void test_parts (void **state)
{
    const char *text =
        "{ \"kind\": \"Workflow\", \"metadata\": {\"name\":\"a\", "
        "\"namespace\":\"default\",\"resourceVersion\":\"17\","
        "\"deletionTimestamp\":\"2026\",\"labels\":{\"name\":\"no\"}},"
        "\"spec\":{\"name\":\"no\",\"x\":[1,-2.5e+3,0,{},[],true,false,null],"
        "\"y\":\"\\u00e9 \\\"}\\n\"}} \n";
    struct dws_skim skim;

    assert_int_equal (skim_text (text, &skim), 0);
    check_span (text, skim.kind, "Workflow");
    check_span (text, skim.name, "a");
    check_span (text, skim.namespace, "default");
    check_span (text, skim.version, "17");
    check_span (text, skim.deleted, "2026");
    assert_int_equal (skim.managed.size, 0);
}

static void test_what_is_not_there (void **state)
{
    struct dws_skim skim;

    assert_int_equal (skim_text ("{}", &skim), 0);
    assert_int_equal (skim.name.size, 0);
    assert_int_equal (skim_text ("{\"metadata\":{},\"x\":1}", &skim), 0);
    assert_int_equal (skim.name.size + skim.managed.size, 0);
}

static void test_utf8 (void **state)
{
    const char *text = "{\"x\":\"\x7f \xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf"
                       " \xef\xbf\xbf \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf\","
                       "\"metadata\":{\"name\":\"\xc3\xa9\"}}";
    struct dws_skim skim;

    assert_int_equal (skim_text (text, &skim), 0);
    check_span (text, skim.name, "\xc3\xa9");
}

/* What is left is JSON, whatever is before and after.
 */
static void test_managed_fields (void **state)
{
    static const char *const texts[][2] = {
        { "{\"metadata\":{\"managedFields\":[{\"a\":\"}\"}]}}",
          "{\"metadata\":{}}" },
        { "{\"metadata\":{\"managedFields\":[] , \"name\":\"a\"}}",
          "{\"metadata\":{ \"name\":\"a\"}}" },
        { "{\"metadata\":{\"name\":\"a\" , \"managedFields\":null }}",
          "{\"metadata\":{\"name\":\"a\" }}" },
        { "{\"metadata\":{\"name\":\"a\",\"managedFields\":[],\"uid\":\"u\"}}",
          "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}" },
    };

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        const char *text = texts[i][0];
        struct dws_skim skim;
        char left[256];

        assert_int_equal (skim_text (text, &skim), 0);
        snprintf (left, sizeof (left), "%.*s%s", (int)skim.managed.at, text,
                  text + skim.managed.at + skim.managed.size);
        assert_string_equal (left, texts[i][1]);
    }
}

static void test_refusals (void **state)
{
    static const char *const texts[] = {
        "", "[]", "\"x\"", "{", "{}x", "{} {}", "{\"a\"}", "{\"a\":}",
        "{\"a\":1,}", "{,}", "{\"a\":[1,]}", "{\"a\":[1 2]}", "{\"a\":01}",
        "{\"a\":-}", "{\"a\":1.}", "{\"a\":1e}", "{\"a\":tru}", "{\"a\":nul}",
        "{\"a\":\"\t\"}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12g4\"}",
        "{\"a\":\"", "{\"a\":\"\\", "{\"a\":\"\\u1", "{a:1}", "{'a':1}",
        "{\"a\\u0062\":1}",
        "{\"a\":\"\xc3\"}", "{\"a\":\"\x80\"}", "{\"a\":\"\xc1\xbf\"}",
        "{\"a\":\"\xe0\x9f\xbf\"}", "{\"a\":\"\xed\xa0\x80\"}",
        "{\"a\":\"\xf0\x8f\xbf\xbf\"}", "{\"a\":\"\xf4\x90\x80\x80\"}",
        "{\"a\":\"\xf5\x80\x80\x80\"}", "{\"a\":\"\xe2\x80\"}",
        "{\"kind\":7}", "{\"kind\":\"a\\u0062\"}", "{\"metadata\":[]}",
        "{\"metadata\":null}", "{\"metadata\":{\"name\":7}}",
        "{\"metadata\":{\"name\":\"\"}}",
        "{\"metadata\":{\"name\":\"a\",\"name\":\"b\"}}",
        "{\"metadata\":{\"name\":\"a\"},\"metadata\":{}}",
        "{\"metadata\":{\"managedFields\":[],\"managedFields\":[]}}",
        "{\"metadata\":{\"managedFields\":[}}",
    };

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        struct dws_skim skim;

        if (skim_text (texts[i], &skim) == 0)
            fail_msg ("taken: %s", texts[i]);
        assert_int_equal (errno, EINVAL);
    }
}

/* However much of an object has come, it is read no further.
 */
static void test_cut_off (void **state)
{
    const char *text =
        "{\"kind\":\"K\",\"metadata\":{\"managedFields\":[{\"a\":[-1.5e3]}],"
        "\"name\":\"a\"},\"x\":\"\\u0041\",\"y\":true}";
    struct dws_skim skim;

    for (size_t n = 0; n < strlen (text); n++) {
        char *part = strndup (text, n);

        assert_int_equal (skim_text (part, &skim), -1);
        free (part);
    }
    assert_int_equal (skim_text (text, &skim), 0);
}

static void test_depth (void **state)
{
    char text[4096] = "{\"a\":";
    struct dws_skim skim;

    memset (text + 5, '[', 4000);
    assert_int_equal (skim_text (text, &skim), -1);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_parts),
        cmocka_unit_test (test_what_is_not_there),
        cmocka_unit_test (test_utf8),
        cmocka_unit_test (test_managed_fields),
        cmocka_unit_test (test_refusals),
        cmocka_unit_test (test_cut_off),
        cmocka_unit_test (test_depth),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Tests of jsonexcerpt.c.
 */

#include <errno.h>
#include <string.h>

#include "libdws/test/util.h"
#include "libdws/util/jsonexcerpt.h"

static void assert_text (struct dws_text text, const char *s)
{
    if (!dws_text_is (text, s))
        fail_msg ("'%.*s' is not '%s'", (int)text.len, text.s ? text.s : "",
                  s);
}

static void assert_malformed (struct dws_text text)
{
    static const struct dws_part parts[] = { { .key = "d" }, { 0 } };
    char buf[256];
    struct dws_excerpt excerpt = { .buf = buf };

    errno = 0;
    assert_int_equal (dws_text_excerpt (text, parts, &excerpt), -1);
    assert_int_equal (errno, EINVAL);
}

/* The copies end where the text does, which sanitizers and valgrind watch.
 */
static void test_cut (void **state)
{
    const char *whole = "{\"a\\\\\":[{\"b\": \"c\\\"\"}, true], \"d\": 1}";

    for (size_t len = 0; len < strlen (whole); len++) {
        char *copy = memcpy (malloc (len + 1), whole, len);

        assert_malformed ((struct dws_text){ copy, len });
        free (copy);
    }
}

static void test_malformed (void **state)
{
    static const char *const texts[] = {
        "", "{1:2}", "{\"a\" 1}", "{\"a\":}", "{\"a\":1,}",
        "{\"a\":1 \"b\":2}",
    };

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++)
        assert_malformed (dws_text (texts[i]));
    assert_malformed ((struct dws_text){ NULL, 0 });
}

static bool is_small (struct dws_text text)
{
    return text.len == 1;
}

static void assert_excerpt (const char *s, const struct dws_part *parts,
                            const char *expected)
{
    char buf[256];
    struct dws_excerpt excerpt = { .buf = buf };
    json_t *e = J (expected);
    json_t *o;

    assert_int_equal (dws_text_excerpt (dws_text (s), parts, &excerpt), 0);
    o = json_loadb (buf, excerpt.len, JSON_DECODE_ANY, NULL);
    assert_non_null (o);
    assert_true (json_equal (o, e));
    assert_int_equal (excerpt.rest.len, 0);
    json_decref (o);
    json_decref (e);
}

static void test_parts (void **state)
{
    static const struct dws_part inner[] = { { .key = "x" }, { 0 } };
    static const struct dws_part parts[] = {
        { .key = "all" },
        { .key = "some", .parts = inner },
        { .key = "list", .wanted = is_small },
        { 0 },
    };

    assert_excerpt ("{\"all\": {\"y\": [1]}, \"no\": {\"x\": 1},"
                   " \"some\": {\"y\": 1, \"x\": {\"y\": 2}},"
                   " \"list\": [10, 2, 30, 4]}", parts,
                   "{'all': {'y': [1]}, 'some': {'x': {'y': 2}},"
                   " 'list': [2, 4]}");
    assert_excerpt ("{\"some\": [{\"x\": 1, \"y\": 2}, {\"y\": 3}, 7]}", parts,
                   "{'some': [{'x': 1}, {}, 7]}");
    assert_excerpt ("{\"some\": \"x\", \"list\": 12, \"all\": null}", parts,
                   "{'some': 'x', 'list': 12, 'all': null}");
    assert_excerpt ("{\"no\": 1}", parts, "{}");
    assert_excerpt ("[]", parts, "[]");
    assert_excerpt ("7", parts, "7");
    assert_excerpt ("{\"a\": [ 1 ]}", NULL, "{'a': [1]}");
}

/* What is marked is there as a whole, and what comes after the value can be gone on
 * with.
 */
static void test_marked (void **state)
{
    static const struct dws_part inner[] = { { .key = "x" }, { 0 } };
    static const struct dws_part parts[] = {
        { .key = "o", .parts = inner, .marked = true },
        { 0 },
    };
    char buf[64];
    struct dws_excerpt excerpt = { .buf = buf };

    assert_int_equal (dws_text_excerpt (dws_text ("{\"o\": {\"y\": 1}} , 2"),
                                        parts, &excerpt), 0);
    assert_text (excerpt.marked, "{\"y\": 1}");
    assert_text (excerpt.rest, " , 2");
    assert_text ((struct dws_text){ buf, excerpt.len }, "{\"o\":{}}");
    assert_int_equal (dws_text_excerpt (dws_text ("{}"), parts, &excerpt), 0);
    assert_null (excerpt.marked.s);
    assert_text (excerpt.rest, "");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_cut),
        cmocka_unit_test (test_malformed),
        cmocka_unit_test (test_parts),
        cmocka_unit_test (test_marked),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

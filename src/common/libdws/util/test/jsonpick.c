/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Tests of jsonpick.c: whatever the text, what is read is what jansson reads.
 */

#include <errno.h>
#include <string.h>

#include "libdws/test/util.h"
#include "libdws/util/jsonparse.h"
#include "libdws/util/jsonpick.h"
#include "texts.h"

#define FLAGS (JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL)

struct picked {
    struct dws_text string;
    struct dws_text inner;
    struct dws_text value;
    json_int_t integer;
    bool is_true;
};

#define MEMBER(NAME, TYPE, FIELD, ...) \
    { .key = NAME, .type = DWS_PICK_##TYPE, \
      .offset = offsetof (struct picked, FIELD), ##__VA_ARGS__ }

static const struct dws_member inner[] = {
    MEMBER ("s", STRING, inner),
    { 0 },
};

static const struct dws_member members[] = {
    MEMBER ("s", STRING, string),
    MEMBER ("i", INTEGER, integer),
    MEMBER ("t", TRUE, is_true),
    MEMBER ("v", VALUE, value),
    { .key = "o", .members = inner },
    { 0 },
};

static int pick (const char *text, size_t len, struct picked *picked,
                 json_t **decoded)
{
    struct dws_text rest = { text, len };

    *picked = (struct picked){ .integer = -1 };
    *decoded = NULL;
    errno = 0;
    if (dws_text_pick (&rest, members, picked, decoded) < 0) {
        assert_int_equal (errno, EINVAL);
        return -1;
    }
    return 0;
}

static bool same_string (json_t *o, struct dws_text text)
{
    const char *s = json_string_value (o);

    return s ? text.s && text.len == json_string_length (o)
               && !memcmp (text.s, s, text.len) : !text.s;
}

static bool same_value (json_t *o, struct dws_text text)
{
    json_t *value = dws_json_parse (text.s, text.len);
    bool same = o ? value && json_equal (o, value) : !text.s;

    json_decref (value);
    return same;
}

static bool same (json_t *o, const struct picked *picked)
{
    json_t *i = json_object_get (o, "i");

    return same_string (json_object_get (o, "s"), picked->string)
        && same_string (json_object_get (json_object_get (o, "o"), "s"),
                        picked->inner)
        && same_value (json_object_get (o, "v"), picked->value)
        && picked->integer == (json_is_integer (i) ? json_integer_value (i) : -1)
        && picked->is_true == json_is_true (json_object_get (o, "t"));
}

/* 'value' as that of each member.
 */
static void check (const char *value, size_t len)
{
    static const char *const formats[] = {
        "{\"s\":%.*s}", "{\"i\":%.*s}", "{\"t\":%.*s}", "{\"o\":%.*s}",
        "{\"v\":%.*s}", "{\"o\":{\"s\":%.*s}}", "{\"x\":%.*s}",
        "{\"s\":\"a\",\"i\":%.*s,\"t\":true}",
    };

    if (memchr (value, '\0', len))
        return;
    for (size_t i = 0; i < sizeof (formats) / sizeof (formats[0]); i++) {
        char text[512];
        int n = snprintf (text, sizeof (text), formats[i], (int)len, value);
        char *copy = memcpy (malloc (n), text, n);
        json_t *o = json_loadb (copy, n, FLAGS, NULL);
        json_t *alone = json_loadb (value, len, JSON_DECODE_ANY | FLAGS, NULL);
        struct picked picked;
        json_t *decoded;
        int rc = pick (copy, n, &picked, &decoded);

        /* what is not read, or not yet, is not checked */
        if (o ? rc < 0 || !same (o, &picked)
              : rc == 0 && alone && !strstr (formats[i], "x")
                && !strstr (formats[i], "v"))
            fail_msg ("'%s' is %s", text, rc < 0 ? "refused" : "taken");
        json_decref (decoded);
        json_decref (alone);
        json_decref (o);
        free (copy);
    }
}

static void test_values (void **state)
{
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++)
        check (texts[i], strlen (texts[i]));
}

static void test_broken (void **state)
{
    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++)
        break_text (texts[i], check);
}

/* A text whose members are all read is taken if it is JSON, and only then.
 */
static void check_whole (const char *text, size_t len)
{
    json_t *o = json_loadb (text, len, FLAGS, NULL);
    struct dws_text rest = { text, len };
    struct picked picked = { .integer = -1 };
    json_t *decoded = NULL;
    int rc = dws_text_pick (&rest, inner, &picked, &decoded);

    if (o && (rc < 0 || !same_string (json_object_get (o, "s"), picked.inner)))
        fail_msg ("'%.*s' is refused", (int)len, text);
    if (!o && rc == 0 && rest.len == 0 && picked.inner.s)
        fail_msg ("'%.*s' is taken", (int)len, text);
    json_decref (decoded);
    json_decref (o);
}

static void test_whole (void **state)
{
    static const char *const objects[] = {
        "{\"s\":\"\"}", "{ \"s\" : \"plain text\" }", "{\"s\":\"a\\u00e9\"}", "{\"s\":\"a\\u0000b\"}",
        "{\"s\":\"\xc3\xa9 and what is longer than eight\"}",
    };

    for (size_t i = 0; i < sizeof (objects) / sizeof (objects[0]); i++) {
        check_whole (objects[i], strlen (objects[i]));
        break_text (objects[i], check_whole);
    }
}

static void test_types (void **state)
{
    static const char text[] =
        "{\"s\": 1, \"i\": \"1\", \"t\": 1, \"o\": [{\"s\": \"x\"}],"
        " \"v\": [1, {}], \"s2\": \"x\"} tail";
    struct picked picked;
    json_t *decoded;

    assert_int_equal (pick (text, strlen (text), &picked, &decoded), 0);
    assert_null (picked.string.s);
    assert_null (picked.inner.s);
    assert_int_equal (picked.integer, -1);
    assert_false (picked.is_true);
    assert_true (dws_text_is (picked.value, "[1, {}]"));
    assert_null (decoded);
    assert_int_equal (pick ("[1]", 3, &picked, &decoded), 0);
    assert_int_equal (pick ("", 0, &picked, &decoded), -1);
    assert_int_equal (pick (NULL, 0, &picked, &decoded), -1);
    assert_int_equal (pick ("[01]", 4, &picked, &decoded), -1);
}

static void test_twice (void **state)
{
    static const char *const once = "{\"x\": 1, \"x\": 2}";
    static const char *const twice[] = {
        "{\"s\": 1, \"s\": 2}", "{\"o\": {}, \"o\": {}}",
        "{\"o\": {\"s\": \"\", \"s\": \"\"}}",
    };
    struct picked picked;
    json_t *decoded;

    assert_int_equal (pick (once, strlen (once), &picked, &decoded), 0);
    for (size_t i = 0; i < sizeof (twice) / sizeof (twice[0]); i++)
        assert_int_equal (pick (twice[i], strlen (twice[i]), &picked,
                                &decoded), -1);
}

static int read_entry (struct dws_text *text, void *to, json_t **decoded)
{
    json_int_t *sum = to;
    struct picked picked = { .integer = 0 };

    if (dws_text_pick (text, members, &picked, decoded) < 0)
        return -1;
    *sum += picked.integer;
    return 0;
}

static void test_each (void **state)
{
    static const struct dws_member each[] = {
        { .key = "a", .each = read_entry,
          .offset = offsetof (struct picked, integer) },
        { 0 },
    };
    static const struct {
        const char *text;
        int sum;                // -1: malformed
    } tab[] = {
        { "{\"a\":[{\"i\":1}, 7 ,{\"s\":\"\\n\",\"i\":2}]}", 3 },
        { "{\"a\":[]}", 0 },
        { "{\"a\":{\"i\":1}}", 0 },
        { "{\"a\":\"x\"}", 0 },
        { "{\"a\":x}", -1 },
        { "{\"a\":[{\"i\":01}]}", -1 },
        { "{\"a\":[{\"i\":1}", -1 },
        { "{\"a\":[{\"i\":1}}", -1 },
        { "{\"a\":[,]}", -1 },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        struct dws_text text = dws_text (tab[i].text);
        struct picked picked = { .integer = 0 };
        json_t *decoded = NULL;
        int rc = dws_text_pick (&text, each, &picked, &decoded);

        assert_int_equal (rc, tab[i].sum < 0 ? -1 : 0);
        if (rc == 0)
            assert_int_equal (picked.integer, tab[i].sum);
        json_decref (decoded);
    }
}

/* An object is had as text, too, and reading goes on behind it.
 */
static void test_both (void **state)
{
    static const struct dws_member both[] = {
        MEMBER ("o", VALUE, value, .members = inner),
        { 0 },
    };
    static const char text[] = "{\"o\": {\"s\": \"a\\tb\"} } , 2";
    struct dws_text rest = { text, strlen (text) };
    struct picked picked = { .integer = -1 };
    json_t *decoded = NULL;

    assert_int_equal (dws_text_pick (&rest, both, &picked, &decoded), 0);
    assert_true (dws_text_is (picked.value, "{\"s\": \"a\\tb\"}"));
    assert_true (dws_text_is (picked.inner, "a\tb"));
    assert_true (dws_text_is (rest, " , 2"));
    assert_int_equal (json_array_size (decoded), 1);
    json_decref (decoded);
}

#define DEEP 100000

/* What is passed over, however deep, costs no stack; what is read goes as deep as jansson.
 */
static void test_deep (void **state)
{
    static const struct {
        const char *key;
        int rc;
    } tab[] = {
        { "x", 0 }, { "v", 0 }, { "s", -1 }, { "t", -1 },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        char *text = malloc (2 * DEEP + 32);
        struct picked picked;
        json_t *decoded;
        int n;

        assert_non_null (text);
        n = sprintf (text, "{\"%s\":", tab[i].key);
        memset (text + n, '[', DEEP);
        memset (text + n + DEEP, ']', DEEP);
        text[n + 2 * DEEP] = '}';
        assert_int_equal (pick (text, n + 2 * DEEP + 1, &picked, &decoded),
                          tab[i].rc);
        json_decref (decoded);
        free (text);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_values),
        cmocka_unit_test (test_broken),
        cmocka_unit_test (test_whole),
        cmocka_unit_test (test_types),
        cmocka_unit_test (test_twice),
        cmocka_unit_test (test_each),
        cmocka_unit_test (test_both),
        cmocka_unit_test (test_deep),
    };

    cmocka_set_message_output (CM_OUTPUT_TAP);
    return cmocka_run_group_tests (tests, NULL, NULL);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Tests of fields.c: each type with values of its own and of every other.
 */

#include "libdws/test/util.h"
#include "libdws/util/fields.h"

static const struct {
    enum dws_field_type type;
    const char *good[7];
} types[] = {
    { DWS_FIELD_ID, { "1", "7", "2147483648", "4294967295", "4294967296",
                      "9223372036854775807" } },
    { DWS_FIELD_USERID, { "0", "1", "7", "2147483648", "4294967295" } },
    { DWS_FIELD_COUNT, { "0", "1", "7" } },
    { DWS_FIELD_BOOL, { "true", "false" } },
    { DWS_FIELD_STRING, { "''", "'7'" } },
    { DWS_FIELD_STRINGS, { "[]", "['a']" } },
    { DWS_FIELD_VARIABLES, { "{}", "{'a':'b'}" } },
};

static const char *const values[] = {
    "null", "true", "false", "-1", "0", "1", "7", "2147483648", "4294967295",
    "4294967296", "9223372036854775807", "1.5", "7.0", "''", "'7'", "[]", "['a']",
    "['a',7]", "[null]", "{}", "{'a':'b'}", "{'a':'b','c':7}", "{'a':null}",
};

#define ARRAY_SIZE(x) (sizeof (x) / sizeof ((x)[0]))

static int check (const char *text, enum dws_field_type type, bool optional,
                  bool nullable, dws_error_t *error)
{
    const struct dws_field fields[] = {
        { .name = "x", .type = type, .optional = optional,
          .nullable = nullable },
        { 0 },
    };
    json_t *o = J (text);
    int rc;

    errno = 0;
    rc = dws_fields_check (o, fields, error);
    json_decref (o);
    if (rc < 0)
        assert_int_equal (errno, EPROTO);
    return rc;
}

static void test_types (void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE (types); i++) {
        for (size_t j = 0; j < ARRAY_SIZE (values); j++) {
            dws_error_t error = { "" };
            char text[64];
            bool good = false;
            int rc;

            for (const char *const *s = types[i].good; *s; s++)
                good |= !strcmp (*s, values[j]);
            snprintf (text, sizeof (text), "{'x': %s, 'y': 1}", values[j]);
            rc = check (text, types[i].type, true, false, &error);
            if (rc != (good ? 0 : -1))
                fail_msg ("type %d: %s: %s", types[i].type, text, error.text);
            if (!good)
                assert_true (strstr (error.text, "x: expected ") == error.text);
        }
    }
}

/* The other types are those of JSON.
 */
static void test_plain_types (void **state)
{
    static const struct {
        enum dws_field_type type;
        const char *name;
        const char *good[2];
    } tab[] = {
        { DWS_FIELD_INTEGER, "an integer", { "-7", "7" } },
        { DWS_FIELD_NUMBER, "a number", { "-7", "7.5" } },
        { DWS_FIELD_ARRAY, "an array", { "[]", "[7]" } },
        { DWS_FIELD_OBJECT, "an object", { "{}", "{'a':7}" } },
    };

    for (size_t i = 0; i < ARRAY_SIZE (tab); i++) {
        for (size_t j = 0; j < ARRAY_SIZE (tab); j++) {
            for (int k = 0; k < 2; k++) {
                bool good = i == j || (tab[i].type == DWS_FIELD_NUMBER && j == 0);
                dws_error_t error = { "" };
                char text[64];

                snprintf (text, sizeof (text), "{'x': %s}", tab[j].good[k]);
                if (tab[i].type == DWS_FIELD_INTEGER && j == 1)
                    good = k == 0;
                assert_int_equal (check (text, tab[i].type, false, false, &error),
                                  good ? 0 : -1);
                if (!good)
                    assert_non_null (strstr (error.text, tab[i].name));
            }
        }
    }
}

static void test_left_out (void **state)
{
    dws_error_t error = { "" };

    assert_int_equal (check ("{}", DWS_FIELD_STRING, true, false, &error), 0);
    assert_int_equal (check ("{}", DWS_FIELD_STRING, false, true, &error), -1);
    assert_string_equal (error.text, "x: is required");
    assert_int_equal (check ("{'x': null}", DWS_FIELD_STRING, true, false,
                             &error), -1);
    assert_string_equal (error.text, "x: expected a string");
    assert_int_equal (check ("{'x': null}", DWS_FIELD_STRING, false, true,
                             &error), 0);
    assert_int_equal (check ("{'x': 7}", DWS_FIELD_STRING, false, true,
                             &error), -1);
    assert_string_equal (error.text, "x: expected a string, or null");
}

static void test_no_object (void **state)
{
    static const struct dws_field none[] = { { 0 } };
    static const struct dws_field one[] = { DWS_REQUIRED ("x", BOOL), { 0 } };
    dws_error_t error = { "" };

    assert_int_equal (dws_fields_check (NULL, none, &error), 0);
    assert_int_equal (dws_fields_check (NULL, one, &error), -1);
    assert_string_equal (error.text, "x: is required");
    assert_int_equal (check ("[]", DWS_FIELD_BOOL, true, false, &error), -1);
    assert_string_equal (error.text, "expected an object");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_types),
        cmocka_unit_test (test_plain_types),
        cmocka_unit_test (test_left_out),
        cmocka_unit_test (test_no_object),
    };

    return cmocka_run_group_tests_name ("fields", tests, NULL, NULL);
}

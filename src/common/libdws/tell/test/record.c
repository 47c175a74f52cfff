/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of record.c.
 */

#include "libdws/tell/record.h"
#include "libdws/test/util.h"

static size_t size_of (json_t *o)
{
    return json_dumpb (o, NULL, 0, JSON_COMPACT);
}

static json_t *text_of (size_t length, char c)
{
    char *s = malloc (length + 1);
    json_t *o;

    assert_non_null (s);
    memset (s, c, length);
    s[length] = '\0';
    o = json_string (s);
    free (s);
    assert_non_null (o);
    return o;
}

static void test_small_is_whole (void **state)
{
    static const char *const text =
        "{'metadata': {'name': 'fluxjob-1'}, 'spec': {'dwDirectives':"
        " ['#DW a'], 'userID': 5}, 'status': {'ready': true, 'env': {}}}";
    json_t *o = J (text);
    json_t *record = dws_record_object (o);

    assert_json (record, text);
    json_decref (record);
    json_decref (o);
}

static void check_cut (json_t *o)
{
    json_t *record = dws_record_object (o);

    assert_non_null (record);
    assert_true (size_of (record) <= DWS_RECORD_MAX);
    assert_true (json_is_true (json_object_get (record, "truncated")));
    json_decref (record);
    json_decref (o);
}

static void test_large_is_cut (void **state)
{
    json_t *o = json_pack ("{s:{s:s} s:{s:o}}", "metadata", "name", "keep",
                           "status", "message", text_of (1000000, 'x'));
    json_t *record = dws_record_object (o);
    json_t *list;

    assert_true (size_of (record) <= DWS_RECORD_MAX);
    assert_string_equal (json_string_value (json_object_get (
                             json_object_get (record, "metadata"), "name")),
                         "keep");
    json_decref (record);
    check_cut (o);

    /* many short ones, at every depth */
    list = json_array ();
    for (int i = 0; i < 40000; i++)
        json_array_append_new (list, json_pack ("{s:i s:s}", "i", i,
                                                "word", "some text"));
    check_cut (json_pack ("{s:{s:o}}", "status", "drivers", list));
    o = json_object ();
    for (int i = 0; i < 50000; i++) {
        char key[16];
        snprintf (key, sizeof (key), "%d", i);
        json_object_set_new (o, key, json_true ());
    }
    check_cut (o);
    o = text_of (100000, '"');     // each takes two bytes
    check_cut (json_pack ("{s:O s:O s:O s:o}", "a", o, "b", o, "c", o, "d", o));
    o = json_object ();
    for (int i = 0; i < 100; i++)
        o = json_pack ("{s:o}", "deeper", o);
    check_cut (o);
}

/* Never in the middle of a character.
 */
static void test_utf8 (void **state)
{
    char *s = malloc (200001);
    json_t *o;

    for (int i = 0; i < 200000; i += 2)
        memcpy (s + i, "\xc3\xa9", 3);
    memmove (s + 1, s, 199999);
    s[0] = 'x';
    s[199999] = '\0';
    o = json_pack ("{s:s}", "message", s);
    free (s);
    assert_non_null (o);
    check_cut (o);
}

static void test_not_an_object (void **state)
{
    json_t *o = json_array ();

    assert_null (dws_record_object (o));
    assert_int_equal (errno, EINVAL);
    assert_null (dws_record_object (NULL));
    json_decref (o);
}

static json_t *movement (int i, const char *status, size_t length)
{
    return json_pack ("{s:{s:i} s:{s:s s:o}}", "metadata", "name", i,
                      "status", "status", status,
                      "message", text_of (length, 'm'));
}

static void test_movements (void **state)
{
    json_t *list = json_array ();
    json_t *record;

    for (int i = 0; i < 10; i++)
        json_array_append_new (list, movement (i, i == 7 ? "Failed"
                                                         : "Success", 10));
    json_array_append_new (list, json_true ());
    record = dws_record_movements (list, 3);
    assert_int_equal (json_array_size (record), 3);
    assert_json (json_object_get (json_array_get (record, 0), "metadata"),
                 "{'name': 7}");
    assert_json (json_object_get (json_array_get (record, 1), "metadata"),
                 "{'name': 0}");
    json_decref (record);
    record = dws_record_movements (list, 0);
    assert_int_equal (json_array_size (record), 0);
    json_decref (record);
    json_decref (list);

    /* each is bounded, and so are all of them */
    list = json_array ();
    for (int i = 0; i < 1000; i++)
        json_array_append_new (list, movement (i, "Failed", 100000));
    record = dws_record_movements (list, 1000);
    assert_true (json_array_size (record) >= 8);
    assert_true (json_array_size (record) < 1000);
    assert_true (size_of (record) <= DWS_RECORD_MAX);
    json_decref (record);
    json_decref (list);
}

static void test_text (void **state)
{
    static const char *const small = "{\"a\": [1, {\"b\": null}]}";
    json_t *o = json_pack ("{s:s s:o}", "name", "keep",
                           "message", text_of (1000000, 'x'));
    char *large = json_dumps (o, JSON_COMPACT);
    char *text = dws_record_text (small);
    json_t *record;

    assert_non_null (text);
    assert_string_equal (text, "{\"a\": [1, {\"b\": null}]}");
    free (text);

    assert_non_null (text = dws_record_text (large));
    assert_true (strlen (text) <= DWS_RECORD_MAX);
    record = dws_record_object (o);
    json_decref (o);
    assert_non_null (o = json_loads (text, 0, NULL));
    assert_true (json_equal (record, o));
    free (text);

    large[strlen (large) - 1] = ']';
    errno = 0;
    assert_null (dws_record_text (large));
    assert_int_equal (errno, EINVAL);
    free (large);
    json_decref (record);
    json_decref (o);

    assert_null (dws_record_text (NULL));
    assert_null (dws_record_text ("[]"));
    assert_int_equal (errno, EINVAL);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_small_is_whole),
        cmocka_unit_test (test_large_is_cut),
        cmocka_unit_test (test_utf8),
        cmocka_unit_test (test_not_an_object),
        cmocka_unit_test (test_text),
        cmocka_unit_test (test_movements),
    };

    return cmocka_run_group_tests_name ("record", tests, NULL, NULL);
}

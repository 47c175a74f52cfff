/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Parts of JSON, and what is left when one is lacking.
 */

#include <errno.h>
#include <stdlib.h>

#include "libdws/test/util.h"
#include "libdws/util/jsonmake.h"

static void check_text (json_t *o, const char *expected)
{
    char *text = json_dumps (o, JSON_COMPACT);

    assert_string_equal (text, expected);
    free (text);
}

static void test_parts (void **state)
{
    json_t *o = json_object ();
    json_t *array = json_array ();

    dws_json_append (&array, json_integer (1));
    dws_json_append (&array, json_integer (2));
    dws_json_set (&o, "list", array);
    dws_json_set (&o, "name", json_string ("x"));
    check_text (o, "{\"list\":[1,2],\"name\":\"x\"}");
    json_decref (o);
}

static void test_lacking (void **state)
{
    json_t *o = json_object ();
    json_t *array = json_array ();

    dws_json_set (&o, "name", json_string ("x"));
    errno = 0;
    dws_json_set (&o, "lacking", NULL);
    assert_null (o);
    assert_int_equal (errno, ENOMEM);
    dws_json_set (&o, "later", json_string ("not leaked"));
    assert_null (o);

    dws_json_append (&array, json_string ("x"));
    errno = 0;
    dws_json_append (&array, NULL);
    assert_null (array);
    assert_int_equal (errno, ENOMEM);
    dws_json_append (&array, json_string ("not leaked"));
    assert_null (array);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_parts),
        cmocka_unit_test (test_lacking),
    };

    cmocka_set_message_output (CM_OUTPUT_TAP);
    return cmocka_run_group_tests (tests, NULL, NULL);
}

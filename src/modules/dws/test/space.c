/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of space.c.
 */

#include "libdws/test/util.h"
#include "../space.h"

#define SET(size, storage) \
    "{'allocationSets': [{'allocationSize': " size \
    ", 'storage': [" storage "]}]}"
#define ON(rabbit, count) \
    "{'name': '" rabbit "', 'allocationCount': " count "}"

static const struct {
    const char *layout;
    const char *space;
} table[] = {
    { "[]", "{}" },
    { "[{}, 5, {'allocationSets': [{}, 'x']}]", "{}" },
    { "[" SET ("10", ON ("a", "2") "," ON ("b", "1")) "," SET ("5",
      ON ("a", "1")) "]", "{'a': 25, 'b': 10}" },
    { "[" SET ("10", "{'name': 'a'}, {'allocationCount': 1}, 7") "]", "{}" },
    { "[" SET ("-10", ON ("a", "1")) "," SET ("10", ON ("a", "-1")) "]",
      "{}" },
    // more than can be said
    { "[" SET ("4611686018427387904", ON ("a", "3")) "]",
      "{'a': 9223372036854775807}" },
    { "[" SET ("9223372036854775807", ON ("a", "1") "," ON ("a", "1")) "]",
      "{'a': 9223372036854775807}" },
};

static void test_space_of (void **state)
{
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        json_t *layout = J (table[i].layout);
        json_t *space = space_of (layout);

        assert_json (space, table[i].space);
        json_decref (space);
        json_decref (layout);
    }
}

static void test_sum (void **state)
{
    json_t *sum = json_object ();
    json_t *one = J ("{'a': 5, 'b': 7}");
    json_t *two = J ("{'a': 1}");

    space_take (sum, one);
    space_take (sum, two);
    space_take (sum, NULL);
    assert_json (sum, "{'a': 6, 'b': 7}");
    space_give_back (sum, one);
    assert_json (sum, "{'a': 1}");
    space_give_back (sum, NULL);
    space_give_back (sum, two);
    space_give_back (sum, two);
    assert_json (sum, "{}");
    json_decref (sum);
    json_decref (one);
    json_decref (two);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_space_of),
        cmocka_unit_test (test_sum),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

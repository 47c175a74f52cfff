/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of space.c.
 */

#include "libdws/test/util.h"
#include "facts/space.h"

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

static struct space *make_space (void)
{
    struct space *space = space_create ();

    assert_non_null (space);
    return space;
}

static void test_layouts (void **state)
{
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        struct space *space = make_space ();
        json_t *layout = J (table[i].layout);
        struct claim claim = { 0 };

        assert_int_equal (space_claim (space, &claim, layout), 0);
        assert_json (claim.bytes, table[i].space);
        assert_json (space_used (space), table[i].space);
        space_free (space, &claim);
        assert_json (space_used (space), "{}");
        json_decref (layout);
        space_destroy (space);
    }
}

/* A job with several directives may claim several times, and gives all of it
 * back at once.
 */
static void test_sum (void **state)
{
    struct space *space = make_space ();
    json_t *a5 = J ("[" SET ("5", ON ("a", "1")) "]");
    json_t *b7 = J ("[" SET ("7", ON ("b", "1")) "]");
    struct claim one = { 0 };
    struct claim two = { 0 };

    assert_int_equal (space_claim (space, &one, a5), 0);
    assert_int_equal (space_claim (space, &one, b7), 0);
    assert_int_equal (space_claim (space, &two, a5), 0);
    assert_json (one.bytes, "{'a': 5, 'b': 7}");
    assert_json (space_used (space), "{'a': 10, 'b': 7}");
    space_free (space, &one);
    assert_null (one.bytes);
    space_free (space, &one);
    assert_json (space_used (space), "{'a': 5}");
    space_free (space, &two);
    assert_json (space_used (space), "{}");
    json_decref (a5);
    json_decref (b7);
    space_destroy (space);
}

/* What the scheduler is told of stays until it is let go, also if it has to be
 * told again.
 */
static void test_held (void **state)
{
    struct space *space = make_space ();
    json_t *layout = J ("[" SET ("5", ON ("a", "1")) "]");
    struct claim claim = { 0 };

    assert_int_equal (space_claim (space, &claim, layout), 0);
    assert_int_equal (space_hold (space, 77, &claim), 0);
    assert_true (claim.held);
    assert_json (space_held (space), "{'77': {'a': 5}}");
    space_hold_failed (&claim);
    assert_false (claim.held);
    assert_json (space_held (space), "{'77': {'a': 5}}");
    assert_int_equal (space_hold (space, 77, &claim), 0);
    space_let_go (space, 77, &claim);
    assert_false (claim.held);
    assert_json (space_held (space), "{}");
    space_free (space, &claim);
    json_decref (layout);
    space_destroy (space);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_layouts),
        cmocka_unit_test (test_sum),
        cmocka_unit_test (test_held),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

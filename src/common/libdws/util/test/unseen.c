/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of unseen.c. t/python/test_texts.py compares names with Unicode.
 */

#include "libdws/test/util.h"
#include "libdws/util/unseen.h"

static void test_character (void **state)
{
    static const struct {
        const char *s;
        uint32_t c;
        size_t len;
    } tab[] = {
        { "a", 'a', 1 },
        { "\u00a0b", 0xa0, 2 },
        { "\u20ac", 0x20ac, 3 },
        { "\U0001f600x", 0x1f600, 4 },
        // what is no UTF-8
        { "\xc3", 0xfffd, 1 },
        { "\xc3(", 0xfffd, 1 },
        { "\xa0", 0xfffd, 1 },
        { "\xff", 0xfffd, 1 },
        { "\xf0\x9f\x98", 0xfffd, 1 },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++) {
        size_t len = 99;

        assert_int_equal (dws_character (tab[i].s, tab[i].s + strlen (tab[i].s),
                                         &len), tab[i].c);
        assert_int_equal (len, tab[i].len);
    }
}

static void test_unseen (void **state)
{
    static const uint32_t yes[] = {
        0, '\t', '\n', '\r', 0x1b, 0x7f, 0x85, 0xa0, 0xad, 0x200b, 0x200f, 0x2028,
        0x202e, 0x2069, 0x3000, 0xfeff, 0xfffd, 0xe0041,
    };
    static const uint32_t no[] = {
        ' ', '!', '~', 0xa1, 0xe9, 0x2010, 0x2027, 0x2030, 0x20ac, 0xfffe, 0x1f600,
    };

    for (size_t i = 0; i < sizeof (yes) / sizeof (yes[0]); i++)
        assert_true (dws_is_unseen (yes[i]));
    for (size_t i = 0; i < sizeof (no) / sizeof (no[0]); i++)
        assert_false (dws_is_unseen (no[i]));
    assert_true (dws_ends_line (0x2028));
    assert_false (dws_ends_line (0xa0));
}

static void test_text (void **state)
{
    static const char s[] = "a\u00a0\u00e9\u202e";
    char buf[32];

    dws_unseen_name (0xa0, buf, sizeof (buf));
    assert_string_equal (buf, "U+00A0 NO-BREAK SPACE");
    dws_unseen_name (0xe0041, buf, sizeof (buf));
    assert_string_equal (buf, "U+E0041");
    dws_unseen_shown (s, sizeof (s) - 1, buf, sizeof (buf));
    assert_string_equal (buf, "a<U+00A0>\u00e9<U+202E>");
    // cut between two
    dws_unseen_shown (s, sizeof (s) - 1, buf, 10);
    assert_string_equal (buf, "a<U+00A0>");
    dws_unseen_shown (s, sizeof (s) - 1, buf, 12);
    assert_string_equal (buf, "a<U+00A0>\u00e9");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_character),
        cmocka_unit_test (test_unseen),
        cmocka_unit_test (test_text),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

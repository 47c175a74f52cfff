/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of clean.c. The table is checked over all of Unicode, against the
 * database of Python, by t/python/test_texts.py.
 */

#include "libdws/test/util.h"
#include "libdws/util/clean.h"

#define GONE "\xef\xbf\xbd"

static const struct {
    const char *text;
    const char *shown;
} texts[] = {
    { "", "" },
    { "plain", "plain" },
    { "d\xc3\xa9j\xc3\xa0 \xf0\x9f\x98\x80", "d\xc3\xa9j\xc3\xa0 \xf0\x9f\x98\x80" },
    // what forges a line
    { "a\nb\r\nc\td", "a b  c d" },
    { "a\xe2\x80\xa8" "b\xe2\x80\xa9" "c\xc2\x85", "a" GONE "b" GONE "c" GONE },
    // what a terminal obeys
    { "\033[2Jgone\a\x7f\xc2\x9b", GONE "[2Jgone" GONE GONE GONE },
    // what turns a text around, or has no width
    { "a\xe2\x80\xae" "b\xe2\x81\xa6" "c\xe2\x80\x8f" "d\xd8\x9c",
      "a" GONE "b" GONE "c" GONE "d" GONE },
    { "a\xe2\x80\x8b" "b\xef\xbb\xbf" "c\xc2\xad", "a" GONE "b" GONE "c" GONE },
    { "\xf3\xa0\x80\x81", GONE },
    // no UTF-8: a stray byte, a line feed and NUL in disguise, a surrogate,
    // beyond Unicode, an incomplete end
    { "a\xff" "b\x80" "c", "abc" },
    { "a\xc0\x8a" "b\xc0\x80" "c", "abc" },
    { "a\xed\xa0\x80" "b", "ab" },
    { "a\xf4\x90\x80\x80" "b\xf8\x88\x80\x80\x80" "c", "abc" },
    { "a\xe2\x80", "a" },
};

static void test_texts (void **state)
{
    char buf[128];

    for (size_t i = 0; i < sizeof (texts) / sizeof (texts[0]); i++) {
        char *copy = dws_clean_copy (texts[i].text);

        assert_ptr_equal (dws_clean (texts[i].text, buf, sizeof (buf)), buf);
        assert_string_equal (buf, texts[i].shown);
        assert_string_equal (copy, texts[i].shown);
        free (copy);
    }
}

/* What grows is cut as what does not, and never within a character.
 */
static void test_cut (void **state)
{
    char buf[8];

    assert_string_equal (dws_clean ("12345678", buf, sizeof (buf)), "1234567");
    assert_string_equal (dws_clean ("12345\xc3\xa9", buf, sizeof (buf)),
                         "12345\xc3\xa9");
    assert_string_equal (dws_clean ("123456\xc3\xa9", buf, sizeof (buf)),
                         "123456");
    assert_string_equal (dws_clean ("\033\033\033", buf, sizeof (buf)),
                         GONE GONE);
    assert_string_equal (dws_clean ("long", buf, 1), "");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_texts),
        cmocka_unit_test (test_cut),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}

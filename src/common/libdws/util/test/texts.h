/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * JSON and what is nearly that, for whatever reads it to be held against jansson.
 */

#ifndef LIBDWS_TEST_TEXTS_H
#define LIBDWS_TEST_TEXTS_H

static const char *const texts[] = {
    "{\"a\":[1,-2,0,-0,10,true,false,null,\"x\",{},[],\"\"],\"\":{\"a\":{}}}",
    " {\t\"a\" :\n1 ,\r\"b\" : [ 1 , [ ] , { } ] } ",
    "{\"a\":1,\"a\":2}",
    "[123456789012345678,-123456789012345678,9223372036854775807]",
    "9223372036854775808", "-9223372036854775808",
    "1.5", "-1e3", "[1E-2,2.0]", "01", "-01", "-", "--1", "1-", "+1", ".5",
    "1.", "1e", "0x1", "NaN", "truE", "true1", "nul", "nulll",
    "\"\\u00e9\\n\\\"\\\\ \xc3\xa9 \\ud83d\\ude00\"", "\"\x7f\"",
    "\"\xc3\"", "\"\xff\"", "\"\n\"", "\"\\x\"", "\"\\ud800\"", "\"\\u0000\"",
    "\"\\", "\"a", "\"", "\"a\\\"",
    "{\"k\\u00e9\":1,\"k\xc3\xa9\":2}", "{\"k\\u0000\":1}", "{\"\xff\":1}",
    "{\"a long key, of more characters than there usually are in one, so that"
    " there is no place for it, and another way has to be found to keep it ok\":1}",
    "", " ", "{", "[", "}", "]", "{]", "[}", "[1", "[1,", "[1,]", "[,1]", "[1 2]",
    "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{,\"a\":1}",
    "{\"a\" 1}", "{a:1}", "{1:1}", "{\"a\":1 \"b\":2}", "{\"a\"", "[1:2]",
    "1 2", "[] x", "{}{}", "[1}", "{\"a\":1]", ":", ",", "[\"a\"\"b\"]",
};

/* What is cut off anywhere, and each character replaced by others. The copy ends where
 * the text does, for ASan.
 */
static inline void break_text (const char *text,
                               void (*check)(const char *text, size_t len))
{
    static const char others[] = "\"\\{}[],: 0-9ex\x01\x80";
    size_t len = strlen (text);

    for (size_t n = 0; n < len; n++) {
        char *copy = malloc (len);

        assert_non_null (copy);
        memcpy (copy, text, len);
        for (const char *c = others; *c; c++) {
            copy[n] = *c;
            check (copy, len);
        }
        free (copy);
        assert_non_null (copy = malloc (n + 1));
        memcpy (copy + 1, text, n);
        check (copy + 1, n);
        free (copy);
    }
}

#endif /* !LIBDWS_TEST_TEXTS_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of spelling.c.
 */

#include "libdws/util/spelling.h"
#include "libdws/test/util.h"

static const char *const known[] = { "mapping", "tc_timeout", "tcp_timeout", "gfs2" };

static const struct {
    const char *word;
    const char *hint;
} table[] = {
    { "maping", ", did you mean mapping?" },
    { "mpaping", ", did you mean mapping?" },
    { "MAPPIN", ", did you mean mapping?" },
    { "mping", ", did you mean mapping?" },
    // two letters at most, of a short word one
    { "mppn", "" },
    { "gf2", ", did you mean gfs2?" },
    { "gfs", ", did you mean gfs2?" },
    { "gs2", ", did you mean gfs2?" },
    { "g2", "" },
    // two neighbours in the wrong order are one
    { "fgs2", ", did you mean gfs2?" },
    { "gsf2", ", did you mean gfs2?" },
    { "gf2s", ", did you mean gfs2?" },
    { "xgs2", "" },
    { "fxs2", "" },
    { "fs", "" },
    // the nearest of two, whichever comes first
    { "tcp_timeou", ", did you mean tcp_timeout?" },
    { "tc_timeou", ", did you mean tc_timeout?" },
    { "something_else", "" },
    { "", "" },
};

static void test_nearest (void **state)
{
    for (size_t i = 0; i < sizeof (table) / sizeof (table[0]); i++) {
        struct dws_nearest nearest = { .word = table[i].word };
        char buf[64];

        for (size_t j = 0; j < sizeof (known) / sizeof (known[0]); j++)
            dws_nearest_try (&nearest, known[j]);
        assert_string_equal (dws_nearest_hint (&nearest, buf, sizeof (buf)),
                             table[i].hint);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_nearest),
    };

    return cmocka_run_group_tests_name ("spelling", tests, NULL, NULL);
}

// vi: ts=4 sw=4 expandtab

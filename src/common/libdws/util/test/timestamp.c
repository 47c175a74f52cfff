/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of timestamp.c.
 */

#include <time.h>

#include "libdws/test/util.h"
#include "libdws/util/timestamp.h"

static void test_timestamp (void **state)
{
    static const struct {
        const char *text;
        double seconds;
    } tab[] = {
        { "1970-01-01T00:00:01Z", 1. },
        { "2026-11-23T12:00:00Z", 1795435200. },
        { "2026-11-23T12:00:00.250000Z", 1795435200.25 },
        { "2026-11-23T12:00:00", 0. },
        { "2026-11-23T12:00:00+01:00", 0. },
        { "2026-11-23", 0. },
        { "2026-13-23T12:00:00Z", 0. },
        { "2026-00-23T12:00:00Z", 0. },
        { "2026-11-00T12:00:00Z", 0. },
        { "2026-11-32T12:00:00Z", 0. },
        { "2026-11-23T24:00:00Z", 0. },
        { "2026-11-23 12:00:00Z", 0. },
        { "2026-11-23T12:00:00.5Zx", 0. },
        { "soon", 0. },
        { "", 0. },
        { NULL, 0. },
    };

    for (size_t i = 0; i < sizeof (tab) / sizeof (tab[0]); i++)
        assert_true (dws_timestamp (tab[i].text) == tab[i].seconds);
}

/* All days, as timegm() counts them.
 */
static void test_days (void **state)
{
    char text[64];

    for (time_t t = 1; t < 150LL * 366 * 86400; t += 86400 - 7) {
        struct tm tm;

        assert_non_null (gmtime_r (&t, &tm));
        assert_true (strftime (text, sizeof (text), "%Y-%m-%dT%H:%M:%SZ",
                               &tm) > 0);
        assert_true (dws_timestamp (text) == (double)t);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_timestamp),
        cmocka_unit_test (test_days),
    };

    return cmocka_run_group_tests (tests, NULL, NULL);
}

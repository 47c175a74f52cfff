/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See timestamp.h. strptime() and timegm() take ten times as long, and every report of
 * a workflow has two times.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "timestamp.h"

static const char pattern[] = "0000-00-00T00:00:00";

static bool is_time (const char *s)
{
    for (const char *p = pattern; *p; p++, s++) {
        if (*p == '0' ? *s < '0' || *s > '9' : *s != *p)
            return false;
    }
    return true;
}

static int number (const char *s, int digits)
{
    int n = 0;

    while (digits-- > 0)
        n = 10 * n + (*s++ - '0');
    return n;
}

/* Days since 1970. Years begin in March here, so that the leap day is the last one.
 */
static int64_t days (int year, int month, int day)
{
    int y = month > 2 ? year : year - 1;
    int m = month > 2 ? month - 3 : month + 9;

    return 365 * (int64_t)y + y / 4 - y / 100 + y / 400
        + (153 * m + 2) / 5 + day - 1 - 719468;
}

double dws_timestamp (const char *s)
{
    double fraction = 0.;
    const char *rest;
    int month;
    int day;
    int64_t seconds;

    if (!s || !is_time (s))
        return 0.;
    month = number (s + 5, 2);
    day = number (s + 8, 2);
    if (month < 1 || month > 12 || day < 1 || day > 31
        || number (s + 11, 2) > 23 || number (s + 14, 2) > 59
        || number (s + 17, 2) > 60)
        return 0.;
    rest = s + strlen (pattern);
    if (*rest == '.') {
        char *end;
        fraction = strtod (rest, &end);
        rest = end;
    }
    if (strcmp (rest, "Z") != 0)
        return 0.;
    seconds = 24 * days (number (s, 4), month, day) + number (s + 11, 2);
    seconds = 60 * seconds + number (s + 14, 2);
    return (double)(60 * seconds + number (s + 17, 2)) + fraction;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See timestamp.h.
 */

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "timestamp.h"

double dws_timestamp (const char *s)
{
    struct tm tm = { 0 };
    const char *rest;
    double fraction = 0.;

    if (!s || !(rest = strptime (s, "%Y-%m-%dT%H:%M:%S", &tm)))
        return 0.;
    if (*rest == '.') {
        char *end;
        fraction = strtod (rest, &end);
        rest = end;
    }
    if (strcmp (rest, "Z") != 0)
        return 0.;
    return (double)timegm (&tm) + fraction;
}

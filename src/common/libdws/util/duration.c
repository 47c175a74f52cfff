/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See duration.h.
 */

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "duration.h"

int dws_duration_parse (const char *s, double *seconds)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {
        { "", 1. }, { "ms", 1E-3 }, { "s", 1. }, { "m", 60. },
        { "h", 3600. }, { "d", 86400. },
    };
    char *end;
    double value;

    if (!strcasecmp (s, "inf") || !strcasecmp (s, "infinity")) {
        *seconds = INFINITY;
        return 0;
    }
    value = strtod (s, &end);
    if (end == s || !isfinite (value))
        return -1;
    for (size_t i = 0; i < sizeof (units) / sizeof (units[0]); i++) {
        if (!strcmp (end, units[i].unit)) {
            *seconds = value * units[i].factor;
            return isfinite (*seconds) ? 0 : -1;
        }
    }
    return -1;
}

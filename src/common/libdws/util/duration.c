/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See duration.h.
 */

#include <math.h>
#include <stddef.h>
#include <stdio.h>
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

/* The unit that a word of 'len' letters stands for (s), or 0.
 */
static double unit_of (const char *word, size_t len)
{
    static const struct {
        const char *words;      // each with a blank after it
        double factor;
    } units[] = {
        { "ms msec msecs millisecond milliseconds ", 1E-3 },
        { "s sec secs second seconds ", 1. },
        { "m min mins minute minutes ", 60. },
        { "h hr hrs hour hours ", 3600. },
        { "d day days ", 86400. },
        { "w wk week weeks ", 7 * 86400. },
    };

    for (size_t i = 0; i < sizeof (units) / sizeof (units[0]); i++) {
        for (const char *w = units[i].words; *w; w += strcspn (w, " ") + 1) {
            if (strcspn (w, " ") == len && strncasecmp (w, word, len) == 0)
                return units[i].factor;
        }
    }
    return 0.;
}

const char *dws_duration_guess (const char *s, char buf[DWS_DURATION_SIZE])
{
    static const struct {
        const char *unit;
        double factor;
    } shown[] = { { "d", 86400. }, { "h", 3600. }, { "m", 60. }, { "s", 1. } };
    double sum = 0.;
    size_t i = 0;

    s += strspn (s, " ");
    while (*s) {
        char *end;
        double value = strtod (s, &end);
        size_t len;

        if (*s < '0' || *s > '9' || !isfinite (value))
            return NULL;
        s = end + strspn (end, " ");
        len = strspn (s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        value *= unit_of (s, len);
        if (value <= 0.)
            return NULL;
        sum += value;
        s += len;
        s += strspn (s, " ");
    }
    if (sum <= 0. || sum > 1E9)
        return NULL;
    while (i < 3
           && sum / shown[i].factor != (double)(long)(sum / shown[i].factor))
        i++;
    snprintf (buf, DWS_DURATION_SIZE, "%g%s", sum / shown[i].factor, shown[i].unit);
    return buf;
}

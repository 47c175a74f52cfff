/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See copied.h. A line of dcp, which NNF keeps as lastMessage:
 *
 *   Copied 5.000 GiB (50%) in 3.139 secs (1.480 GiB/s) 1 secs left ...
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "copied.h"

/* Bytes in a text like "1.5 GiB", which 'after' is to follow; 0 if it is none.
 */
static double parse_bytes (const char *s, const char *after)
{
    static const char *const units = "KMGTPE";
    const char *unit;
    char *end;
    double bytes = strtod (s, &end);

    if (end == s || !(bytes > 0.) || !isfinite (bytes))
        return 0.;
    end += strspn (end, " ");
    if (*end && (unit = strchr (units, *end))) {
        double base = end[1] == 'i' ? 1024. : 1000.;

        for (; unit >= units; unit--)
            bytes *= base;
        end += end[1] == 'i' ? 2 : 1;
    }
    return *end == 'B' && !strncmp (end + 1, after, strlen (after)) ? bytes : 0.;
}

static const char *after (const char *s, const char *word)
{
    const char *found = s ? strstr (s, word) : NULL;

    return found ? found + strlen (word) : NULL;
}

static double number (const char *s, const char *unit)
{
    char *end;
    double n = s ? strtod (s, &end) : 0.;

    return n > 0. && isfinite (n) && !strncmp (end, unit, strlen (unit)) ? n : 0.;
}

static void read_line (const char *line, struct dws_copied *copied)
{
    const char *s = after (line, "Copied ");

    if (!s)
        return;
    copied->bytes = parse_bytes (s, " ");
    s = after (s, "(");
    copied->percent = number (s, "%)");
    if (!(s = after (s, "secs (")))
        return;
    copied->rate = parse_bytes (s, "/s)");
    copied->left = number (after (s, ") "), " secs left");
}

void dws_copied_read (json_t *status, struct dws_copied *copied)
{
    const char *state = "";
    const char *line = "";
    const char *data = "";
    const char *rate = "";
    double percent = 0.;

    *copied = (struct dws_copied){ 0 };
    json_unpack (status, "{s?s s?{s?s s?s s?s s?F}}",
                 "state", &state,
                 "commandStatus",
                   "lastMessage", &line,
                   "data", &data,
                   "rate", &rate,
                   "progress", &percent);
    read_line (line, copied);
    if (!strcmp (state, "Finished")) {
        if (copied->bytes == 0.)
            copied->bytes = parse_bytes (data, "");
        copied->percent = 100.;
        copied->rate = copied->left = 0.;
        return;
    }
    if (percent > 0.)
        copied->percent = percent;
    if (copied->percent > 100.)
        copied->percent = 100.;
    if (copied->rate == 0.)
        copied->rate = parse_bytes (rate, "/s");
}

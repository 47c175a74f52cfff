/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See timeline.h.
 */

#include <math.h>
#include <string.h>

#include "jsonmake.h"
#include "timeline.h"

/* How far the wall clock may be from the expected time (s): the clock is slewed all the
 * time, and slewing is no jump.
 */
#define SLACK 5.

void dws_timeline_init (struct dws_timeline *line, double wall, double mono)
{
    memset (line, 0, sizeof (*line));
    line->base = wall - mono;
    line->now = wall;
}

static void add_jump (struct dws_timeline *line, double from, double to)
{
    if (line->count == DWS_JUMPS_MAX) {
        memmove (line->jumps, line->jumps + 1,
                 (DWS_JUMPS_MAX - 1) * sizeof (line->jumps[0]));
        line->count--;
    }
    line->jumps[line->count++] = (struct dws_jump) { from, to };
}

bool dws_timeline_look (struct dws_timeline *line, double wall, double mono)
{
    double expected;

    line->now = line->base + mono;
    expected = line->now + line->offset;
    if (fabs (wall - expected) <= SLACK)
        return false;
    add_jump (line, expected, wall);
    line->offset = wall - line->now;
    return true;
}

/* Can the stamp have been written after the first 'i' jumps, and before the next one,
 * when the wall clock was 'end'? A jump is noticed a little after it was made, so stamps
 * in between are ambiguous: after a jump forward no stamp is at or below 'from', and
 * after a jump back any may be.
 */
static bool may_follow (const struct dws_timeline *line, size_t i, double stamp,
                        double end)
{
    const struct dws_jump *jump = &line->jumps[i > 0 ? i - 1 : 0];

    return stamp <= end
        && (i == 0 || jump->to < jump->from || stamp > jump->from);
}

double dws_timeline_of (const struct dws_timeline *line, double stamp)
{
    double now = line->now + line->offset;
    double end = now;
    double shift = 0.;
    double latest = 0.;

    if (stamp <= 0.)
        return 0.;
    for (size_t i = line->count; ; i--) {
        if (may_follow (line, i, stamp, end) && stamp + shift > latest)
            latest = stamp + shift;
        if (i == 0)
            break;
        shift += line->jumps[i - 1].to - line->jumps[i - 1].from;
        end = line->jumps[i - 1].from;
    }
    return (latest > 0. && latest < now ? latest : now) - line->offset;
}

double dws_timeline_wall (const struct dws_timeline *line, double t)
{
    double wall = t + line->offset;

    if (t <= 0.)
        return 0.;
    for (size_t i = line->count; i > 0; i--) {
        const struct dws_jump *jump = &line->jumps[i - 1];

        if (wall >= jump->to)
            break;
        wall -= jump->to - jump->from;
    }
    return wall;
}

json_t *dws_timeline_record (const struct dws_timeline *line, const char *boot)
{
    json_t *o = json_pack ("{s:s s:f}", "boot", boot,
                           "ahead", line->base + line->offset);
    json_t *jumps = json_array ();

    for (size_t i = 0; i < line->count; i++)
        dws_json_append (&jumps, json_pack ("[f,f]", line->jumps[i].from,
                                            line->jumps[i].to));
    dws_json_set (&o, "jumps", jumps);
    return o;
}

bool dws_timeline_learn (struct dws_timeline *line, json_t *record,
                         const char *boot)
{
    const char *then = "";
    json_t *jumps = NULL;
    json_t *jump;
    size_t index;
    double ahead = 0.;
    double shift;

    if (!record
        || json_unpack (record, "{s:s s:F s:o}", "boot", &then, "ahead", &ahead,
                        "jumps", &jumps) < 0)
        return false;
    json_array_foreach (jumps, index, jump) {
        double from;
        double to;

        if (json_unpack (jump, "[F,F]", &from, &to) == 0)
            add_jump (line, from, to);
    }
    shift = line->base + line->offset - ahead;
    if (!*boot || strcmp (then, boot) != 0 || fabs (shift) <= SLACK)
        return false;
    add_jump (line, line->now + line->offset - shift, line->now + line->offset);
    return true;
}

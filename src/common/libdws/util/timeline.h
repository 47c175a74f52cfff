/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * A line of time that does not jump when somebody sets the clock, and the way from it
 * to the wall clock and back. All deadlines of jobs are moments of that line. Eventlogs
 * and Kubernetes objects have stamps of the wall clock, so the line remembers its jumps:
 * a stamp of before a jump is as old after it as it was.
 *
 * The caller reads the clocks. The line is a copy of one of the monotonic clock, which
 * begins where the wall clock was then: times in seconds look alike.
 */

#ifndef LIBDWS_TIMELINE_H
#define LIBDWS_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

/* What the wall clock said when the jump was noticed, and would have said without it.
 */
struct dws_jump {
    double from;
    double to;
};

/* The oldest give way.
 */
#define DWS_JUMPS_MAX 16

struct dws_timeline {
    double base;                // the line minus the monotonic clock
    double offset;              // the wall clock minus the line
    double now;                 // at the last look, on the line
    struct dws_jump jumps[DWS_JUMPS_MAX];       // oldest first
    size_t count;
};

/* Begin a line with what the two clocks say (s).
 */
void dws_timeline_init (struct dws_timeline *line, double wall, double mono);

/* Look at the clocks. Returns true if the wall clock has jumped since the last look: by
 * more than the few seconds that it may have been adjusted by. The jump is the last one
 * of line->jumps then. 'line->now' is the moment of this look.
 */
bool dws_timeline_look (struct dws_timeline *line, double wall, double mono);

/* The moment at which the wall clock was 'stamp'. What has happened did so before the
 * last look. 0 stays 0: it has not. Where the clock was set back a stamp may be of two
 * moments, of which this is the later one.
 */
double dws_timeline_of (const struct dws_timeline *line, double stamp);

/* What the wall clock was at the moment 't', or will be. 0 stays 0.
 */
double dws_timeline_wall (const struct dws_timeline *line, double t);

/* What a process that starts later has to know, and what it makes of that: jumps up to
 * then, and one while nobody looked, if the host has not been booted since ('boot' is a
 * name of that, "" if there is none). dws_timeline_learn() is to be called after
 * dws_timeline_init() and returns true if there was such a jump; it ignores what it
 * cannot read, NULL as well. dws_timeline_record() returns NULL with ENOMEM.
 */
json_t *dws_timeline_record (const struct dws_timeline *line, const char *boot);
bool dws_timeline_learn (struct dws_timeline *line, json_t *record,
                         const char *boot);

#endif /* !LIBDWS_TIMELINE_H */

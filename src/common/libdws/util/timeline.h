/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * A time line that does not jump when somebody sets the clock, and its conversion to and
 * from the wall clock. Deadlines of jobs are moments of the line. Eventlogs and
 * Kubernetes objects have stamps of the wall clock, so the line remembers its jumps: a
 * stamp from before a jump keeps its age.
 *
 * The caller reads the clocks. The line runs with the monotonic clock and begins at the
 * time of the wall clock, so its seconds look like those of the wall clock.
 */

#ifndef LIBDWS_TIMELINE_H
#define LIBDWS_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

/* The wall clock when a jump was noticed: as expected ('from'), and as read ('to').
 */
struct dws_jump {
    double from;
    double to;
};

/* A further jump replaces the oldest.
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

/* Note the time of the clocks as 'line->now'. Returns true if the wall clock has jumped
 * since the last look, by more than the few seconds of usual adjustments: the jump is
 * then the last one of line->jumps.
 */
bool dws_timeline_look (struct dws_timeline *line, double wall, double mono);

/* The moment at which the wall clock was 'stamp', at the latest that of the last look. 0
 * (no event) stays 0. Where the clock was set back a stamp may mean two moments: the
 * later one is returned.
 */
double dws_timeline_of (const struct dws_timeline *line, double stamp);

/* The wall clock at the moment 't', past or future. 0 stays 0.
 */
double dws_timeline_wall (const struct dws_timeline *line, double t);

/* Pass the jumps on to a process that starts later. dws_timeline_learn(), to be called
 * after dws_timeline_init(), also finds a jump while no process ran, if the host has not
 * been booted since ('boot' names the boot, "" if unknown), and returns true if there was
 * one; it ignores what it cannot read, NULL as well. dws_timeline_record() returns NULL
 * with ENOMEM.
 */
json_t *dws_timeline_record (const struct dws_timeline *line, const char *boot);
bool dws_timeline_learn (struct dws_timeline *line, json_t *record,
                         const char *boot);

#endif /* !LIBDWS_TIMELINE_H */

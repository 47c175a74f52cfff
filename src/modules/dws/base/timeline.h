/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The line of time that deadlines of jobs are on (libdws/util/timeline.h): it does not
 * jump when somebody sets the clock. What has a stamp of the wall clock, from an eventlog
 * or from Kubernetes, is put on it when it is decoded; what people are told is a stamp of
 * the wall clock again. Dates that were agreed with people, such as when a persistent file
 * system expires, are of the wall clock: flux_reactor_time().
 *
 * Jumps are kept in the KVS (dws.clock), for the next start of this module and for the
 * jobtap plugin.
 */

#ifndef DWS_TIMELINE_H
#define DWS_TIMELINE_H

#include "base/ctx.h"

/* Reads the KVS and waits for it, so call it before the reactor runs.
 */
struct timeline *timeline_create (struct dws_ctx *ctx);
void timeline_destroy (struct timeline *timeline);

/* Now. A jump of the wall clock is noticed here: it is logged, kept, and told by
 * ctx->events.
 */
double timeline_now (struct timeline *timeline);

/* The moment of a stamp, and the wall clock at a moment; 0 stays 0.
 */
double timeline_of (struct timeline *timeline, double stamp);
double timeline_wall (struct timeline *timeline, double t);

/* For who asks how long ago 't' was, and subtracts it from what his clock says: where it
 * was set that is not what it was at 't'. 0 stays 0.
 */
double timeline_since (struct timeline *timeline, double t);

/* For what is only compared with itself, within this process: the monotonic clock.
 */
double monotonic_now (void);

#endif /* !DWS_TIMELINE_H */

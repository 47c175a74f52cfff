/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The timeline of job deadlines (libdws/util/timeline.h), which does not jump when an
 * admin sets the clock. Timestamps from eventlogs and Kubernetes are converted to it
 * when they are decoded, and back to wall clock time in answers to users. Dates agreed
 * with users, such as the end of a lease, use the wall clock: flux_reactor_time().
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

/* The present time on the timeline. Detects jumps of the wall clock: logs them, writes
 * them to the KVS and calls ctx->events->clock_set.
 */
double timeline_now (struct timeline *timeline);

/* The moment of a stamp, and the wall clock at a moment; 0 stays 0.
 */
double timeline_of (struct timeline *timeline, double stamp);
double timeline_wall (struct timeline *timeline, double t);

/* A stamp for clients that compute the age of 't' by their present wall clock. Differs
 * from timeline_wall() if the clock was set after 't'. 0 stays 0.
 */
double timeline_since (struct timeline *timeline, double t);

/* The monotonic clock (s), for differences within this process.
 */
double monotonic_now (void);

#endif /* !DWS_TIMELINE_H */

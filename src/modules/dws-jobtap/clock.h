/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * How long ago an event of an eventlog was, when somebody may have set the clock since
 * (libdws/util/timeline.h). Jumps of before the plugin was loaded are in the KVS, where
 * dws.so notes them.
 */

#ifndef DWS_JOBTAP_CLOCK_H
#define DWS_JOBTAP_CLOCK_H

#include "job.h"

struct jobtap_clock;

/* Start to read the KVS. 'known' is called once, when that is done: jobtap_clock_left()
 * may say something else from then on.
 */
struct jobtap_clock *jobtap_clock_create (struct jobtap *ctx,
                                          void (*known)(struct jobtap *ctx));
void jobtap_clock_destroy (struct jobtap_clock *clock);

/* Seconds left of 'limit', counted from an event of time 't': 0 if they are over. As
 * long as the jumps are unknown all of 'limit' is left.
 */
double jobtap_clock_left (struct jobtap_clock *clock, double t, double limit);

#endif /* !DWS_JOBTAP_CLOCK_H */

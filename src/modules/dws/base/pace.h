/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Bounds on requests that can be left out: how many are made in a second, how many wait
 * for their answer at one time, and none for a while after one was refused.
 */

#ifndef DWS_BASE_PACE_H
#define DWS_BASE_PACE_H

#include <stdbool.h>

struct pace;

struct pace *pace_create (double per_second, int under_way_max,
                          double pause_after_refusal);
void pace_destroy (struct pace *pace);

/* True if a request may be made at the time 'now'; pace_end() is called with its answer.
 */
bool pace_begin (struct pace *pace, double now);
void pace_end (struct pace *pace, bool refused, double now);

/* There will be no answers to those that wait for one.
 */
void pace_reset (struct pace *pace);

#endif /* !DWS_BASE_PACE_H */

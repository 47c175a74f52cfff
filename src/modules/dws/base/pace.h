/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Limits the pace of optional requests: how many per second, how many without an
 * answer, and a pause after a refusal.
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

/* Pending requests will get no answer.
 */
void pace_reset (struct pace *pace);

#endif /* !DWS_BASE_PACE_H */

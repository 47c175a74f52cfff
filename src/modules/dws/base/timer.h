/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Timers that are set anew again and again.
 */

#ifndef DWS_TIMER_H
#define DWS_TIMER_H

#include <flux/core.h>

/* Let a timer run out once, after so many seconds from now, whether it is
 * running or not.
 */
void timer_start (flux_watcher_t *w, double after);

#endif /* !DWS_TIMER_H */

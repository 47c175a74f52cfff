/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Timers that are restarted often.
 */

#ifndef DWS_TIMER_H
#define DWS_TIMER_H

#include <flux/core.h>

/* Make a timer expire once, 'after' seconds from now, whether it is running or
 * not.
 */
void timer_start (flux_watcher_t *w, double after);

#endif /* !DWS_TIMER_H */

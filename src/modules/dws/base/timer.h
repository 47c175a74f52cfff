/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Timers that are restarted often, and those that repeat.
 */

#ifndef DWS_TIMER_H
#define DWS_TIMER_H

#include <flux/core.h>

/* A timer that is not running. Returns NULL with errno set.
 */
flux_watcher_t *timer_make (flux_t *h, flux_watcher_f cb, void *arg);

/* A timer that is running, and expires every 'interval' seconds.
 */
flux_watcher_t *timer_every (flux_t *h, double interval, flux_watcher_f cb,
                             void *arg);

/* Make a timer expire once, 'after' seconds from now, whether it is running or
 * not.
 */
void timer_start (flux_watcher_t *w, double after);

#endif /* !DWS_TIMER_H */

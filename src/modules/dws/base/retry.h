/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Trying again later, and each time after twice as long.
 */

#ifndef DWS_RETRY_H
#define DWS_RETRY_H

#include <stdbool.h>
#include <flux/core.h>

struct retry;

typedef void (*retry_f)(void *arg);

/* 'cb' is called after 'min' seconds at first, and after 'max' at most.
 */
struct retry *retry_create (flux_reactor_t *r, double min, double max,
                            retry_f cb, void *arg);
void retry_destroy (struct retry *retry);

/* Call back once after the next delay; an earlier call back that is still to
 * come is cancelled.
 */
void retry_later (struct retry *retry);

/* The same after so many seconds; the next delay stays what it is.
 */
void retry_after (struct retry *retry, double after);

/* Do not call back.
 */
void retry_stop (struct retry *retry);

/* What was tried has worked: the next delay is the shortest again.
 */
void retry_reset (struct retry *retry);

/* True if retry_later() was not called since the retry was made or reset.
 */
bool retry_is_first (const struct retry *retry);

#endif /* !DWS_RETRY_H */

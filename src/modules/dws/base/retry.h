/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * A timer for retries with exponential backoff.
 */

#ifndef DWS_RETRY_H
#define DWS_RETRY_H

#include <stdbool.h>
#include <flux/core.h>

struct retry;

typedef void (*retry_f)(void *arg);

/* 'min' and 'max' are the first and the largest delay before 'cb' is called
 * (s).
 */
struct retry *retry_create (flux_t *h, double min, double max,
                            retry_f cb, void *arg);
void retry_destroy (struct retry *retry);

/* Call back once after the next delay; an earlier call back that is still to
 * come is cancelled.
 */
void retry_later (struct retry *retry);

/* The same after 'after' seconds; the next delay stays unchanged.
 */
void retry_after (struct retry *retry, double after);

/* Do not call back.
 */
void retry_stop (struct retry *retry);

/* The attempt has succeeded: the next delay is 'min' again.
 */
void retry_reset (struct retry *retry);

/* True if retry_later() was not called since the retry was made or reset.
 */
bool retry_is_first (const struct retry *retry);

#endif /* !DWS_RETRY_H */

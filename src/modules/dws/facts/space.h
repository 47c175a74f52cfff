/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The bytes that jobs hold on each rabbit, as maps {RABBIT: BYTES}: one map of
 * each job, and their sum. No other part writes either.
 */

#ifndef DWS_SPACE_H
#define DWS_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

struct space;

/* What one job holds on rabbits. Part of struct job.
 */
struct claim {
    json_t *bytes;              // by rabbit; NULL: nothing is known of
    bool held;                  // the scheduler is told (space_hold())
};

struct space *space_create (void);
void space_destroy (struct space *space);

/* The sum of all claims: borrowed.
 */
json_t *space_used (const struct space *space);

/* The job takes, in addition to what it has, the bytes of a layout as
 * dws_allocation_sets() makes it. Fails with ENOMEM. Without memory the sum may
 * stay too low, which does no harm: the storage controllers refuse what does
 * not fit.
 */
int space_claim (struct space *space, struct claim *claim, json_t *layout);

/* The job holds nothing on any rabbit (any more).
 */
void space_free (struct space *space, struct claim *claim);

/* Before the claims of jobs from before this start of the module have become
 * known, the sum is too low.
 */
bool space_known (const struct space *space);
void space_set_known (struct space *space);

/* Claims that the scheduler must not give away, though it may think them free:
 * {JOBID: {RABBIT: BYTES}}, borrowed.
 */
json_t *space_held (const struct space *space);

/* Add a claim to those that are held, or take it out. Adding fails with ENOMEM.
 */
int space_hold (struct space *space, uint64_t jobid, struct claim *claim);
void space_let_go (struct space *space, uint64_t jobid, struct claim *claim);

/* The scheduler could not be told of a claim: that has to be done again.
 */
void space_hold_failed (struct claim *claim);

/* Empty the map of held claims; each claim still says whether it was held.
 */
void space_held_clear (struct space *space);

#endif /* !DWS_SPACE_H */

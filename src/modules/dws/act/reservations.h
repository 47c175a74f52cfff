/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the scheduler has given to jobs on rabbits, as R says it. Until a job takes that
 * (facts/space.h) it is promised.
 */

#ifndef DWS_ACT_GIVEN_H
#define DWS_ACT_GIVEN_H

#include <stdbool.h>
#include <jansson.h>

#include "facts/jobs.h"

/* Note the bytes on rabbits that the scheduler has set aside for the job. Not
 * every scheduler writes them into R.
 */
void given_learn_R (struct job *job, json_t *R);

/* A start of the module may find jobs that run. Read what R says of each that is
 * not known, and tell of it all with the event jobs_recalled, which may be at
 * once.
 */
void reservations_recall (struct dws_ctx *ctx);

/* Is known what has been given to all jobs that have not taken it yet? Without that a job
 * that has no nodes might be given the same.
 */
bool reservations_known (struct dws_ctx *ctx);

/* Add to 'bytes', {RABBIT: BYTES}, what the scheduler has promised to other jobs than
 * 'job' by their R. Returns 'bytes', which may be NULL (no memory).
 */
json_t *reservations_add (struct job *job, json_t *bytes);

#endif /* !DWS_ACT_GIVEN_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Reservations: the bytes on rabbits that R says the scheduler has allocated to jobs. A
 * reservation counts as promised until the job takes it (facts/space.h).
 */

#ifndef DWS_ACT_RESERVATIONS_H
#define DWS_ACT_RESERVATIONS_H

#include <stdbool.h>
#include <jansson.h>

#include "facts/jobs.h"

/* Note the job's reservation in R, which not every scheduler writes.
 */
void reservations_learn_R (struct job *job, json_t *R);

/* Read the reservations of jobs that ran before this start of the module, and call the
 * event jobs_recalled when all are known, maybe at once.
 */
void reservations_recall (struct dws_ctx *ctx);

/* Are the reservations of all jobs known that have not taken theirs yet? Before that a
 * data-first job might get the same bytes.
 */
bool reservations_known (struct dws_ctx *ctx);

/* Add the promised reservations of all jobs but 'job' to 'bytes'.
 */
void reservations_add (struct job *job, struct dws_bytes *bytes);

#endif /* !DWS_ACT_RESERVATIONS_H */

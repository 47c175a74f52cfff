/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Data-first jobs: which jobs these are, and which nodes they may have.
 */

#ifndef DWS_ACT_DATA_FIRST_H
#define DWS_ACT_DATA_FIRST_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/util/error.h"
#include "facts/jobs.h"

/* Should the workflow of this job be created as data first?
 */
bool first_wanted (const struct job *job);

/* May the job be data first, if its user asks for that? Fails with EINVAL and a text
 * for the user.
 */
int first_check (const struct job *job, dws_error_t *error);

/* Returns true if data_first_goodness() can answer, or the job is not data first;
 * otherwise jobs_changed() is called when it can.
 */
bool data_first_ready (struct job *job);

/* The nodes that the job may have by its constraints and its attributes dw_rabbits and
 * dw_near, as returned by dws_pool_nodes(). Fails as that does.
 */
json_t *data_first_goodness (struct job *job, dws_error_t *error);

/* Can the job, whose storage is made, have enough nodes next to it, now or later? Not
 * if it was moved to a queue with other nodes meanwhile. An error counts as yes:
 * storage_demand() reports it. Call this after data_first_ready().
 */
bool data_first_in_reach (struct job *job);

#endif /* !DWS_ACT_DATA_FIRST_H */

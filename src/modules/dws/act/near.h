/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Where the user wants the job: attributes dw_rabbits and dw_near.
 */

#ifndef DWS_NEAR_H
#define DWS_NEAR_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/util/error.h"
#include "facts/jobs.h"

/* Returns true if the other functions have something to say. Otherwise what
 * dw_near names is being looked up; jobs_changed() is called when it is to be asked
 * again. A job that has been let in once has its place in its jobspec.
 */
bool near_ready (struct job *job);

/* Can the job be where it is wanted? Fails with EINVAL or ENOSPC and a text for its
 * owner, or with ENOMEM.
 */
int near_check (struct job *job, dws_error_t *error);

/* The constraint for a job of 'nodes' nodes, a new reference; a JSON null if it
 * may be anywhere. Fails as near_check() does.
 */
json_t *near_constraint (struct job *job, int64_t nodes, dws_error_t *error);

#endif /* !DWS_NEAR_H */

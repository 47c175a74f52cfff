/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Places the job as its user wants: attributes dw_rabbits and dw_near.
 */

#ifndef DWS_CONSTRAINT_H
#define DWS_CONSTRAINT_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/util/error.h"
#include "facts/jobs.h"

/* Returns true if the other functions can answer. Otherwise the lookup of dw_near is
 * under way, and jobs_changed() is called when it ends. Once a job is admitted its
 * jobspec has the constraint.
 */
bool constraint_ready (struct job *job);

/* Can the job run where its user wants it? Fails with EINVAL or ENOSPC and a text for
 * its owner, or with ENOMEM.
 */
int constraint_check (struct job *job, dws_error_t *error);

/* The constraint for a job of 'nodes' nodes, a new reference; a JSON null if it
 * may be anywhere. Fails as constraint_check() does.
 */
json_t *constraint_make (struct job *job, int64_t nodes, dws_error_t *error);

#endif /* !DWS_CONSTRAINT_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Jobs that get their storage and their data before they get nodes: which they are, and
 * which nodes they may have.
 */

#ifndef DWS_ACT_FIRST_H
#define DWS_ACT_FIRST_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/util/error.h"
#include "facts/jobs.h"

/* Is a job whose workflow is to be made such a one?
 */
bool first_wanted (const struct job *job);

/* May it be, if its user asks for that? Fails with EINVAL and a text for the user.
 */
int first_check (const struct job *job, dws_error_t *error);

/* Returns true if first_goodness() has something to say; jobs_changed() is called when
 * it is to be asked again. For other jobs it is true.
 */
bool first_ready (struct job *job);

/* The nodes that the job may have, by its constraints and by where its user wants it:
 * as dws_pool_nodes() has them. Fails as that does.
 */
json_t *first_goodness (struct job *job, dws_error_t *error);

#endif /* !DWS_ACT_FIRST_H */

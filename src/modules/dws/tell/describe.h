/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What dws.status says of one job, and to whom.
 */

#ifndef DWS_DESCRIBE_H
#define DWS_DESCRIBE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>
#include <flux/core.h>

#include "facts/jobs.h"

/* Who asks: the instance owner may see everything, others only their own jobs.
 */
struct asker {
    bool owner;
    uint32_t userid;
};

/* Who has sent 'msg'. Returns -1 with errno.
 */
int asker_of (const flux_msg_t *msg, struct asker *asker);

/* Whether the job is any of the asker's business.
 */
bool is_visible (const struct job *job, const struct asker *asker);

/* What dws.status says about a job in a list; and about a single job, with
 * details that are too much for a list. NULL with errno ENOMEM.
 */
json_t *describe_job (struct job *job);
json_t *describe_job_fully (struct job *job);

#endif /* !DWS_DESCRIBE_H */

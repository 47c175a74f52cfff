/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The part of dws.status about one job, and the check who may see it.
 */

#ifndef DWS_DESCRIBE_H
#define DWS_DESCRIBE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>
#include <flux/core.h>

#include "facts/jobs.h"

/* The user who sends a request: the instance owner may see everything, guests
 * only their own jobs.
 */
struct asker {
    bool owner;
    uint32_t userid;
};

/* Get the sender of 'msg'. Returns -1 with errno.
 */
int asker_of (const flux_msg_t *msg, struct asker *asker);

/* May the asker see this job?
 */
bool is_visible (const struct job *job, const struct asker *asker);

/* The description of a job in a list; and that of a single job, with details
 * that are too long for a list. NULL with errno ENOMEM.
 */
json_t *describe_job (struct job *job);
json_t *describe_job_fully (struct job *job);

#endif /* !DWS_DESCRIBE_H */

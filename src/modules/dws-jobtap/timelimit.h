/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The time limit of a job counts from the start of its tasks: staging and mounting come
 * before. Flux counts from the allocation. Its exec service adds what was lost if that is
 * more than exec.max-start-delay-percent of the limit; this adds what is less, by a
 * resource-update event (RFC 21), of which the scheduler, the exec service and the
 * job's shell learn.
 */

#ifndef DWS_JOBTAP_TIMELIMIT_H
#define DWS_JOBTAP_TIMELIMIT_H

#include "job.h"

/* To be called when the job's tasks have started. A job without a time limit, or one
 * that has been prolonged before, stays as it is.
 */
void jobtap_timelimit_prolong (struct jobtap_job *job);

#endif /* !DWS_JOBTAP_TIMELIMIT_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Letting a job go whose epilog takes too long. Its nodes go to other jobs then,
 * so those where its file systems may be mounted are drained before.
 */

#ifndef DWS_JOBTAP_ABANDON_H
#define DWS_JOBTAP_ABANDON_H

#include "job.h"

/* Ask the dws service to drain the nodes that are still mounted. If it cannot, or
 * does not in time, all nodes of the job are drained from here; the service gives
 * those back that turn out to be clean. Then the epilog ends.
 */
void jobtap_abandon (struct jobtap_job *job);

/* The same without asking.
 */
void jobtap_let_go (struct jobtap_job *job);

#endif /* !DWS_JOBTAP_ABANDON_H */

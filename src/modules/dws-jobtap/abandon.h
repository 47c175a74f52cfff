/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Letting a job go whose epilog takes too long. Other jobs get its nodes then, so
 * nodes where its file systems may be mounted are drained before.
 */

#ifndef DWS_JOBTAP_ABANDON_H
#define DWS_JOBTAP_ABANDON_H

#include "job.h"

/* Ask the dws service to drain the nodes that are still mounted. If it cannot, or
 * does not in time, the plugin drains all nodes of the job; the service undrains
 * those that turn out to be clean. Then the epilog ends.
 */
void jobtap_abandon (struct jobtap_job *job);

/* The same without asking.
 */
void jobtap_let_go (struct jobtap_job *job);

#endif /* !DWS_JOBTAP_ABANDON_H */

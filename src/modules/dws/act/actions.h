/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Executes the actions of dws_reconcile(): commands to the agent, requests to
 * the job manager, records in the KVS. Results become facts. The struct action
 * of each kind says how.
 */

#ifndef DWS_ACTIONS_H
#define DWS_ACTIONS_H

#include "libdws/decide/reconcile.h"
#include "facts/jobs.h"

void actions_run (struct job *job, const struct dws_actions *actions);

/* Drop what was read for the job's workflow, which is gone.
 */
void actions_workflow_gone (struct job *job);

#endif /* !DWS_ACTIONS_H */

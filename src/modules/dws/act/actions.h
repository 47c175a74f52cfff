/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The one executor of what dws_reconcile() asks for: commands to the agent,
 * requests to the job manager, records in the KVS. Their results are noted as
 * facts. How an action is carried out is said by its struct action.
 */

#ifndef DWS_ACTIONS_H
#define DWS_ACTIONS_H

#include "libdws/decide/reconcile.h"
#include "facts/jobs.h"

void actions_run (struct job *job, const struct dws_actions *actions);

#endif /* !DWS_ACTIONS_H */

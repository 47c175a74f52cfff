/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The actions that write to the Workflow object itself.
 */

#ifndef DWS_ACT_WORKFLOW_H
#define DWS_ACT_WORKFLOW_H

#include "act/action.h"

/* For struct action: the result of a command that changes or deletes a job's
 * workflow. If the workflow no longer exists, the command counts as successful.
 */
bool workflow_result (struct job *job, const struct result *result);

#endif /* !DWS_ACT_WORKFLOW_H */

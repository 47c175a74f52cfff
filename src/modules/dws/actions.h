/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The one executor of what dws_reconcile() asks for: commands to the agent,
 * requests to the job manager, records in the KVS. What comes of them is
 * noted as facts.
 */

#ifndef DWS_ACTIONS_H
#define DWS_ACTIONS_H

#include <jansson.h>

#include "libdws/reconcile.h"
#include "agent.h"
#include "jobs.h"

void actions_run (struct job *job, const struct dws_actions *actions);

/* Take in the agent's result of a command. The command is the caller's.
 */
void actions_result (struct dws_ctx *ctx,
                     const struct command *cmd,
                     json_t *report);

/* Store in the KVS what is known of a workflow: the timing of 'state' and,
 * unless it is NULL, the Workflow object.
 */
int actions_save (struct job *job, enum dws_state state, json_t *object);

/* Note that the workflow can never serve this job, with a text for its owner.
 */
void actions_refuse (struct job *job, const char *text);

#endif /* !DWS_ACTIONS_H */

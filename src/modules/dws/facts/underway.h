/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Commands and requests without an answer: one record for each job and kind of
 * action. Only underway.c writes .busy and .saved of struct dws_job, from which
 * dws_reconcile() sees which actions still run.
 */

#ifndef DWS_UNDERWAY_H
#define DWS_UNDERWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "libdws/decide/reconcile.h"
#include "libdws/facts/job.h"
#include "libdws/facts/workflow.h"

/* The recipient of an action's commands or requests.
 */
enum way {
    WAY_AGENT,                  // a command: its result is lost with the agent
    WAY_FLUX,                   // a request to Flux
};

/* Part of struct job.
 */
struct underway {
    struct {
        uint16_t asked[2];      // by enum way: how many without an answer
        bool failed;            // not to be repeated before the next retry
    } kinds[DWS_ACT_COUNT];
    uint32_t reading;           // of .saved: the Workflow is being read for it
};

/* An action of this kind has sent a command or request, or has an answer to
 * one. 'ok' is false if the action has to be repeated. underway_end() returns
 * true if all of the kind have been answered and none has failed.
 */
void underway_begin (struct underway *u, struct dws_job *facts,
                     enum dws_action_kind kind, enum way way);
bool underway_end (struct underway *u, struct dws_job *facts,
                   enum dws_action_kind kind, enum way way, bool ok);

/* True if exactly one command or request of this kind lacks its answer, and
 * none of the others has failed.
 */
bool underway_is_last (const struct underway *u, enum dws_action_kind kind);

/* True if a command or request of any kind lacks its answer.
 */
bool underway_any (const struct underway *u);

/* Allow failed actions to run again. An action with unanswered commands must
 * wait for their answers, lest a late one be taken for that to the next
 * attempt. Returns true if an action has to wait.
 */
bool underway_repeat (struct underway *u, struct dws_job *facts);

/* Mark a timing or the Workflow object as saved: 'bit' is of DWS_SAVED. If the
 * object must be read first, note the begin and end of the read.
 * underway_read_end() returns false if the object is no longer wanted.
 */
void underway_save (struct underway *u, struct dws_job *facts, uint32_t bit);
void underway_read_begin (struct underway *u, uint32_t bit);
bool underway_read_end (struct underway *u, uint32_t bit);

/* The agent is gone: pending commands get no result, and actions of the agent
 * need not wait for their retry.
 */
void underway_agent_lost (struct underway *u, struct dws_job *facts);

/* The workflow is gone: no record of it counts as saved.
 */
void underway_workflow_gone (struct underway *u, struct dws_job *facts);

#endif /* !DWS_UNDERWAY_H */

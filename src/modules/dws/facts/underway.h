/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What is under way for a job: one record for each kind of action. This file
 * alone writes .busy and .saved of struct dws_job, by which dws_reconcile()
 * knows of it.
 */

#ifndef DWS_UNDERWAY_H
#define DWS_UNDERWAY_H

#include <stdbool.h>
#include <stdint.h>

#include "libdws/decide/reconcile.h"
#include "libdws/facts/job.h"
#include "libdws/facts/workflow.h"

/* What an action has asked for, and of whom.
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

/* It is time to repeat the actions that have failed. One whose other commands
 * lack their answers waits for these: a late answer must not be taken for one
 * to the next attempt. Returns true if there is such an action.
 */
bool underway_repeat (struct underway *u, struct dws_job *facts);

/* The timing of a workflow or the Workflow object is stored: 'bit' is of
 * DWS_SAVED. The object may have to be read before: that begins, and ends.
 * underway_read_end() returns false if the object is not wanted any more.
 */
void underway_save (struct underway *u, struct dws_job *facts, uint32_t bit);
void underway_read_begin (struct underway *u, uint32_t bit);
bool underway_read_end (struct underway *u, uint32_t bit);

/* The results of commands to the agent will not come any more. Actions that the
 * agent carries out need not wait for their retry.
 */
void underway_agent_lost (struct underway *u, struct dws_job *facts);

/* The workflow is not there any more: nothing of it is stored.
 */
void underway_workflow_gone (struct underway *u, struct dws_job *facts);

#endif /* !DWS_UNDERWAY_H */

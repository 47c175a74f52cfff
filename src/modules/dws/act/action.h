/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * struct action, and functions for those that implement actions. The list of
 * actions is DWS_ACTIONS in libdws/decide/reconcile.h.
 */

#ifndef DWS_ACTION_H
#define DWS_ACTION_H

#include <stdbool.h>
#include <jansson.h>
#include <flux/core.h>

#include "libdws/decide/reconcile.h"
#include "base/calls.h"
#include "facts/jobs.h"

/* The result of one command, as reported by the agent.
 */
struct result {
    bool ok;
    int status;                 // of HTTP, 0: none
    const char *message;        // never NULL
    json_t *object;             // or NULL; borrowed
    json_t *workflow;           // 'object' if that is a Workflow, else NULL
    json_t *objects;            // or NULL
    json_t *texts;              // of objects requested whole, or NULL
    int index;                  // of the command
    bool current;               // the job still has the same workflow
};

/* The functions of one action. Only 'run' is required; the others may be NULL.
 */
struct action {
    enum dws_action_kind kind;

    /* False: this action and those after it have to wait. */
    bool (*ready)(struct job *job);

    /* Send the action's commands and requests by act_send() and act_call().
     * Returns 0, or -1 with errno set if the action should be retried. */
    int (*run)(struct job *job, const struct dws_action *wanted);

    /* Take in the result of one command. Returns true if the command has
     * succeeded; NULL: if the agent says so. */
    bool (*result)(struct job *job, const struct result *result);

    /* A command has failed. Returns true if a retry is pointless; NULL: the
     * command is retried. */
    bool (*failed)(struct job *job, const struct result *result);

    /* Instead of 'result' and 'failed': take in the objects that a command has
     * listed, or their texts, while the job's workflow exists. 'objects' is NULL if the command
     * has failed, which then is not worth trying again. */
    void (*listed)(struct job *job, int index, json_t *objects);

    /* Every command or request of the action has succeeded: note facts that no
     * object shows, or does not show yet. Returns false if the action has to be
     * asked for again. Called for commands while their workflow exists, and for
     * requests to Flux. */
    bool (*done)(struct job *job);
};

/* What the actions of a job keep. Made before the first action runs, so that actions
 * and their callbacks always find it (act_own()).
 */
struct act_job {
    json_t *breakdowns;         // those read so far
    json_t *servers;            // of the storage that the job uses, or its own if it
                                //  is data first
    json_t *sent;               // its own, while they are being written
    enum dws_first offering;    // of the resource-update under way
    double t_down;              // since when the job waits for a rabbit that is down
                                //  or a file system in use (s), 0: it does not wait
    int missing;                // consecutive writes of Servers or Computes answered
                                //  404
    bool loss_is_final;         // the loss being reported: no retry is possible
    bool daemons_saved;         // the record of daemons is written
};

/* NULL before the first action.
 */
static inline struct act_job *act_own (const struct job *job)
{
    return job_slot (job, SLOT_ACTIONS);
}

/* Each struct is defined next to its functions.
 */
#define ACTION_DECLARE(KIND, ident, name, by) \
    extern const struct action action_##ident;
DWS_ACTIONS (ACTION_DECLARE)

/* Send one of an action's commands to the agent. 'command' as for agent_send().
 */
int act_send (struct job *job, const struct action *action, int index,
              json_t *command);

/* Add a request to Flux to an action. Takes over 'f', which may be NULL with
 * errno set, as calls_add() does. The callback is one of those below, or one
 * that calls act_end().
 */
int act_call (struct job *job, const struct action *action, flux_future_t *f,
              call_f cb);

/* Callback for a request to the job manager. A job unknown to the job manager
 * is no longer active.
 */
void act_done_cb (const struct call *call, flux_future_t *f);

/* Callback for a request that is not retried: a node may not belong to this
 * instance, a job may have ended.
 */
void act_tried_cb (const struct call *call, flux_future_t *f);

/* The job of a request, or NULL if it is not known any more.
 */
struct job *act_job (const struct call *call);

/* End a request. If 'ok' is false, log 'what' with errno.
 */
void act_end (struct job *job, const struct call *call, flux_future_t *f,
              const char *what, bool ok);

/* Note that the workflow can never serve this job, with a text for its owner. Returns 0,
 * as run() does then.
 */
int act_refuse (struct job *job, const char *text);

#endif /* !DWS_ACTION_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What one action is, and what those that carry one out have in common. The
 * list of all is DWS_ACTIONS in libdws/decide/reconcile.h.
 */

#ifndef DWS_ACTION_H
#define DWS_ACTION_H

#include <stdbool.h>
#include <jansson.h>
#include <flux/core.h>

#include "libdws/decide/reconcile.h"
#include "base/calls.h"
#include "facts/jobs.h"

/* What the agent reports of one command.
 */
struct result {
    bool ok;
    int status;                 // of HTTP, 0: none
    const char *message;        // never NULL
    json_t *object;             // or NULL; borrowed
    json_t *workflow;           // the same if it is a Workflow, else NULL
    json_t *objects;            // or NULL
    json_t *texts;              // of objects that were asked for whole, or NULL
    int index;                  // of the command
    bool current;               // the job's workflow is the one it was then
};

/* One action. All but 'run' may be NULL.
 */
struct action {
    enum dws_action_kind kind;

    /* False: the action has to wait, and so have those after it. */
    bool (*ready)(struct job *job);

    /* Ask the agent or Flux to carry the action out, by act_send() and
     * act_call(). Returns 0, or -1 with errno set if the action should be tried
     * again. */
    int (*run)(struct job *job, const struct dws_action *wanted);

    /* Take in the result of one command. Returns true if the command has come
     * to what it should; NULL: if the agent says so. */
    bool (*result)(struct job *job, const struct result *result);

    /* A command has not come to what it should. Returns true if it is not worth
     * trying again; NULL: it is. */
    bool (*failed)(struct job *job, const struct result *result);

    /* Instead of 'result' and 'failed': take in the objects that a command has
     * listed, or their texts, while the job's workflow exists. 'objects' is NULL if the command
     * has failed, which then is not worth trying again. */
    void (*listed)(struct job *job, int index, json_t *objects);

    /* All that was asked for has been done: note facts that no object shows, or
     * does not show yet. Returns false if the action has to be asked for again.
     * Called for commands while their workflow exists, and for requests to
     * Flux. */
    bool (*done)(struct job *job);
};

/* Each action's struct is found next to its functions.
 */
#define ACTION_DECLARE(KIND, ident, name, by) \
    extern const struct action action_##ident;
DWS_ACTIONS (ACTION_DECLARE)

/* Send one of an action's commands to the agent. 'command' as for agent_send().
 */
int act_send (struct job *job, const struct action *action, int index,
              json_t *command);

/* A request to Flux, as part of an action. Takes over 'f', which may be NULL
 * with errno set, as calls_add() does. The callback is one of those below, or
 * one that calls act_end().
 */
int act_call (struct job *job, const struct action *action, flux_future_t *f,
              call_f cb);

/* A request to the job manager. A job that it does not know is not active any
 * more.
 */
void act_done_cb (const struct call *call, flux_future_t *f);

/* A request that is not worth trying for ever: a node may not be a node of this
 * instance, a job may have ended.
 */
void act_tried_cb (const struct call *call, flux_future_t *f);

/* The job of a request, or NULL if it is not known any more.
 */
struct job *act_job (const struct call *call);

/* A request has ended. If it has not reached 'what', errno says why.
 */
void act_end (struct job *job, const struct call *call, flux_future_t *f,
              const char *what, bool ok);

/* Note that the workflow can never serve this job, with a text for its owner.
 */
void act_refuse (struct job *job, const char *text);

#endif /* !DWS_ACTION_H */

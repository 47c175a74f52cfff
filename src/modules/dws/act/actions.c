/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See actions.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/safelog.h"
#include "act/action.h"
#include "act/actions.h"
#include "act/errorlog.h"
#include "agent/agent.h"

#define ACTION_ROW(KIND, ident, name, by) [DWS_ACT_##KIND] = &action_##ident,

/* The struct action of each kind of action.
 */
static const struct action *const table[DWS_ACT_COUNT] = {
    DWS_ACTIONS (ACTION_ROW)
};

static int run_action (struct job *job, const struct action *action,
                       const struct dws_action *wanted)
{
    if (dws_action_needs_agent (action->kind)
        && !agent_ready (job->ctx->agent)) {
        errno = EAGAIN;
        return -1;
    }
    return action->run (job, wanted);
}

static void drop_objects (struct act_job *own)
{
    json_decref (own->breakdowns);
    json_decref (own->servers);
    json_decref (own->sent);
    own->breakdowns = own->servers = own->sent = NULL;
}

void actions_workflow_gone (struct job *job)
{
    struct act_job *own = act_own (job);

    if (own)
        drop_objects (own);
}

static void own_destroy (struct job *job, void *data)
{
    drop_objects (data);
    free (data);
}

/* Retry later without memory.
 */
static bool has_own (struct job *job)
{
    if (job_slot_make (job, SLOT_ACTIONS, sizeof (struct act_job), own_destroy))
        return true;
    safe_log_error (job->ctx->h, "actions");
    jobs_wake (job, 1.);
    return false;
}

void actions_run (struct job *job, const struct dws_actions *actions)
{
    if (actions->count == 0 || !has_own (job))
        return;
    for (size_t i = 0; i < actions->count; i++) {
        const struct dws_action *wanted = &actions->list[i];
        const struct action *action = table[wanted->kind];

        if (action->ready && !action->ready (job))
            return;
        if (run_action (job, action, wanted) < 0) {
            if (errno != EAGAIN)
                errorlog_add (job, action->kind, errno, strerror (errno));
            job_begin (job, action->kind, WAY_FLUX);
            job_end (job, action->kind, WAY_FLUX, false);
        }
    }
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Reads a job's workflow by its name, which alone can say that it does not exist.
 * agent/reports.c learns the answer of the API server, as every result.
 */

#include <string.h>

#include "act/action.h"
#include "agent/commands.h"

/* The indices of the commands. After a start of the module a job's workflow can have
 * either of two names, because a workflow of another instance may have had the first
 * (take_other_name()).
 */
enum {
    NAME,
    OTHER_NAME,
};

static const char *name_of (const struct job *job, int index,
                            char buf[DWS_NAME_SIZE])
{
    return dws_workflow_name (job->facts->id, index == OTHER_NAME
                                                  ? job->ctx->instance : NULL,
                              buf);
}

static bool is_name (const struct job *job, int index)
{
    char buf[DWS_NAME_SIZE];

    return !job->wf || !strcmp (job->wf->name, name_of (job, index, buf));
}

static int send_look (struct job *job, int index)
{
    char buf[DWS_NAME_SIZE];

    return act_send (job, &action_look, index,
                     command_create ("get", "workflows",
                                     job->wf ? job->wf->namespace
                                             : DWS_NAMESPACE,
                                     name_of (job, index, buf)));
}

static int run_look (struct job *job, const struct dws_action *wanted)
{
    return send_look (job, job->taken || !is_name (job, NAME) ? OTHER_NAME
                                                              : NAME);
}

/* Is the workflow gone? Yes if the name is free, or belongs to another workflow, which
 * was not learned.
 */
static bool is_gone (const struct job *job, const struct result *result)
{
    struct dws_workflow *wf;
    bool gone;

    if (!result->ok)
        return result->status == 404;
    if (!job->wf || !job->wf->uid)
        return !job->wf;
    wf = dws_workflow_decode (result->workflow, job->ctx->instance, NULL);
    gone = wf && wf->uid && strcmp (wf->uid, job->wf->uid) != 0;
    dws_workflow_destroy (wf);
    return gone;
}

static bool look_result (struct job *job, const struct result *result)
{
    /* The workflow may have been learned meanwhile, under the other name. */
    if (!result->current || !is_name (job, result->index))
        return true;
    if (!is_gone (job, result))
        return result->ok && !job->wf->doubted;
    if (!job->wf && result->index == NAME)
        return send_look (job, OTHER_NAME) == 0;
    jobs_forget_workflow (job);
    return true;
}

const struct action action_look = {
    .kind = DWS_ACT_LOOK,
    .run = run_look,
    .result = look_result,
};

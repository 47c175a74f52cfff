/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Gives a workflow the label by which watches and lists select those of this instance,
 * and the annotation that says whose it is. A workflow of ours that has lost the label
 * gets it back. A workflow of flux-coral2 is adopted: it also gets the fields that
 * flux-coral2 would have written later, and needs no new finalizer, since flux-dws uses
 * the same.
 */

#include "libutil/safelog.h"
#include "act/action.h"
#include "act/writeback.h"
#include "act/storage.h"
#include "act/workflow.h"
#include "agent/commands.h"

enum {
    LOOK,
    WRITE,
    LABEL,
    LABEL_AGAIN,
};

static int send_label (struct job *job, int index)
{
    const char *instance = job->ctx->instance;
    json_t *patch = json_pack ("{s:{s:{s:s} s:{s:s}}}", "metadata",
                               "labels", DWS_INSTANCE_LABEL, instance,
                               "annotations", DWS_INSTANCE_LABEL, instance);

    return act_send (job, &action_adopt, index, command_patch (job->wf, patch));
}

static int run_adopt (struct job *job, const struct dws_action *wanted)
{
    if (!job->wf->stray)
        return send_label (job, LABEL_AGAIN);
    if (!dws_adopt_needs_computes (job->facts, job->wf))
        return send_label (job, LABEL);
    return act_send (job, &action_adopt, LOOK,
                     command_create ("get", "computes",
                                     job->wf->computes_namespace,
                                     job->wf->computes));
}

/* Keep Computes that flux-coral2 has written, because it excludes failed nodes.
 */
static bool has_computes (const struct result *result)
{
    return json_array_size (json_object_get (result->object, "data")) > 0;
}

static bool label_result (struct job *job, const struct result *result)
{
    char label[JOB_LABEL_SIZE];
    char name[DWS_NAME_SIZE];

    if (result->ok) {
        safe_log (job->ctx->h, LOG_INFO, "%s: taken over from flux-coral2",
                  job_label (job, label));
        writeback_memo (job, DWS_KEY_WORKFLOW, job_workflow (job, name));
    }
    return workflow_result (job, result);
}

/* Without the label no watch reports changes of the workflow.
 */
static bool label_again_result (struct job *job, const struct result *result)
{
    char label[JOB_LABEL_SIZE];

    if (result->ok)
        safe_log (job->ctx->h, LOG_NOTICE, "%s: somebody has changed the label "
                  DWS_INSTANCE_LABEL " of the workflow, which has it again",
                  job_label (job, label));
    return workflow_result (job, result);
}

static bool adopt_result (struct job *job, const struct result *result)
{
    if (result->index == LABEL)
        return label_result (job, result);
    if (result->index == LABEL_AGAIN)
        return label_again_result (job, result);
    if (!result->current || !job->wf)
        return true;
    if (!result->ok && result->status != 404)
        return false;
    if (result->index == LOOK && result->ok && !has_computes (result))
        return storage_send_computes (job, &action_adopt, WRITE) == 0;
    return send_label (job, LABEL) == 0;
}

const struct action action_adopt = {
    .kind = DWS_ACT_ADOPT,
    .run = run_adopt,
    .result = adopt_result,
};

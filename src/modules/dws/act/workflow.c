/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See workflow.h: creates a job's workflow, sets its desired state and deletes
 * it.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/jsonmake.h"
#include "libutil/safelog.h"
#include "act/action.h"
#include "act/writeback.h"
#include "act/data_first.h"
#include "act/groups.h"
#include "act/limits.h"
#include "act/constraint.h"
#include "act/objects.h"
#include "act/storage.h"
#include "act/workflow.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "facts/leases.h"
#include "facts/persistent.h"

/* Create
 */

/* Delay before a job that waits is checked again (s).
 */
#define AGAIN 1.

/* An admitted job, whose workflow is made anew, does not wait here.
 */
static bool uses_ready (struct job *job)
{
    dws_error_t error;

    free (job->facts->awaits);
    job->facts->awaits = NULL;
    if (job->facts->phase != DWS_PHASE_DEPEND
        || persistent_made (job->ctx->persistent, job, &error) == 0)
        return true;
    job->facts->awaits = strdup (error.text);
    jobs_wake (job, AGAIN);
    job->ctx->events->job_changed (job);
    return false;
}

static bool create_ready (struct job *job)
{
    return groups_ready (job->ctx->groups, job->facts->userid,
                         job->facts->group)
        && limits_ready (job)
        && constraint_ready (job)
        && uses_ready (job)
        && leases_promise (job);
}

/* Commands of action_create and action_desire.
 */
enum {
    CHANGE,
    FIND,
};

static int find_persistent (struct job *job, const struct action *action,
                            const char *name)
{
    return act_send (job, action, FIND,
                     command_create ("get", "persistentstorageinstances",
                                     DWS_NAMESPACE, name));
}

/* Read the file system to be destroyed by its name: a lagging watch or a list from an
 * older backup may lack it, so only a 404 proves that it is gone.
 */
static int find_destroyed (struct job *job)
{
    char name[DWS_PERSISTENT_NAME_SIZE];

    if (!persistent_unlisted (job->ctx->persistent, job, name)) {
        errno = ENOMEM;
        return -1;
    }
    return find_persistent (job, &action_create, name);
}

static int run_create (struct job *job, const struct dws_action *wanted)
{
    dws_error_t error;
    char name[DWS_NAME_SIZE];
    json_t *object;
    gid_t gid;

    /* A job submitted while this module was away was not checked by dws.create. */
    if (persistent_permitted (job->ctx, job->facts, &error) < 0
        || limits_check (job, &error) < 0)
        return act_refuse (job, error.text);
    if (persistent_check (job->ctx->persistent, job, &error) < 0
        || leases_check (job, &error) < 0) {
        if (errno == ENOENT)
            return find_destroyed (job);
        /* Without a link the list of file systems may be stale. */
        if (agent_link (job->ctx->agent) == DWS_LINK_UP)
            return act_refuse (job, error.text);
    }
    /* Do not refuse an admitted job for drives lost since. */
    if (job->facts->phase == DWS_PHASE_DEPEND
        && (constraint_check (job, &error) < 0
            || first_check (job, &error) < 0))
        return errno == ENOMEM ? -1 : act_refuse (job, error.text);
    if (groups_find (job->ctx->groups, job->facts->userid, job->facts->group,
                     &gid, &error) < 0)
        return errno == ENOENT || errno == EPERM ? act_refuse (job, error.text)
                                                 : -1;
    if (!(object = object_workflow (job->facts, job_workflow (job, name), gid,
                                    job->ctx->instance, first_wanted (job),
                                    &error)))
        return -1;
    return act_send (job, &action_create, CHANGE,
                     command_create_with ("create", "workflows",
                                          DWS_NAMESPACE,
                                          job_workflow (job, name),
                                          "object", object));
}

/* Rejections by the webhook and the schema are the user's fault. Other refusals
 * (permissions, a missing rule set) are for the admin to fix.
 */
static bool is_users_fault (int status, const char *message)
{
    return status == 422 || status == 400
        || (status == 403 && strstr (message, "admission webhook") != NULL);
}

static bool is_ours (struct dws_ctx *ctx, json_t *object)
{
    struct dws_workflow *wf = dws_workflow_decode (object, ctx->instance,
                                                   NULL);
    bool ours = wf && wf->ours;

    dws_workflow_destroy (wf);
    return ours;
}

/* Job ids count from the start of the instance: two young instances on a
 * cluster give out the same ids, and so the same names of workflows. Our
 * workflows are found by their label.
 */
static void take_other_name (struct job *job)
{
    char label[JOB_LABEL_SIZE];
    char name[DWS_NAME_SIZE];
    dws_error_t error;

    if (job->taken) {
        dws_error (&error, EEXIST, "workflow %s belongs to another Flux "
                   "instance", job_workflow (job, name));
        act_refuse (job, error.text);
        return;
    }
    safe_log (job->ctx->h, LOG_INFO, "%s: the name is another instance's",
              job_label (job, label));
    job->taken = true;
}

static bool find_result (struct job *job, const struct result *result)
{
    dws_error_t error;

    if (!result->ok && result->status != 404)
        return false;
    if (result->ok)
        persistent_learn (job->ctx->persistent, result->object, false);
    if (persistent_check (job->ctx->persistent, job, &error) == 0)
        return run_create (job, NULL) == 0;
    act_refuse (job, error.text);
    return true;
}

static bool create_result (struct job *job, const struct result *result)
{
    bool ok = result->ok;
    char name[DWS_NAME_SIZE];

    if (result->index == FIND)
        return find_result (job, result);
    if (!ok && result->status == 409 && result->workflow) {
        if (!is_ours (job->ctx, result->workflow)) {
            take_other_name (job);
            return true;
        }
        ok = true;
    }
    if (!ok && is_users_fault (result->status, result->message)) {
        act_refuse (job, result->message);
        return true;
    }
    if (ok) {
        if (result->ok && job->wf)
            job->wf->made = true;
        writeback_memo (job, DWS_KEY_WORKFLOW, job_workflow (job, name));
    }
    return ok;
}

const struct action action_create = {
    .kind = DWS_ACT_CREATE,
    .ready = create_ready,
    .run = run_create,
    .result = create_result,
};

/* Change and delete
 */

bool workflow_result (struct job *job, const struct result *result)
{
    if (!result->ok && result->status == 404) {
        /* The workflow was deleted, which the watch has not reported yet. */
        if (result->current)
            jobs_forget_workflow (job);
        return true;
    }
    return result->ok;
}

/* Patch the desired state. DWS allows 'hurry' only in Teardown.
 */
static int desire_state (struct job *job, const struct action *action,
                         enum dws_state state, bool hurry)
{
    json_t *patch = json_pack ("{s:{s:s s:o*}}", "spec",
                               "desiredState", dws_state_name (state),
                               "hurry", hurry ? json_true () : NULL);
    json_t *command = command_patch (job->wf, patch);

    /* From Teardown on the workflow needs no finalizer. An older agent ignores the key
     * and keeps it.
     */
    if (state == DWS_STATE_TEARDOWN && job->wf->finalizer)
        dws_json_set (&command, "finalizer", json_string (DWS_FINALIZER));
    return act_send (job, action, CHANGE, command);
}

static int find_made (unsigned command, const char *name, void *arg)
{
    return find_persistent (arg, &action_desire, name) < 0 ? -1 : 0;
}

/* Setup waits for the lease of the file system that the workflow has made.
 */
static int run_desire (struct job *job, const struct dws_action *wanted)
{
    if (wanted->state == DWS_STATE_SETUP) {
        int rc = leases_keep (job);

        if (rc < 0)
            return persistent_each_named (job, find_made, job);
        if (rc == 0)
            return 0;
    }
    return desire_state (job, &action_desire, wanted->state, false);
}

static bool desire_result (struct job *job, const struct result *result)
{
    if (result->index != FIND)
        return workflow_result (job, result);
    if (!result->ok && result->status != 404)
        return false;
    if (result->ok)
        persistent_learn (job->ctx->persistent, result->object, false);
    leases_have_read (job);
    return true;
}

const struct action action_desire = {
    .kind = DWS_ACT_DESIRE,
    .run = run_desire,
    .result = desire_result,
};

/* If an exception cut the epilog short, 'hurry' lets drivers skip slow steps.
 */
static int run_teardown (struct job *job, const struct dws_action *wanted)
{
    return desire_state (job, &action_teardown, DWS_STATE_TEARDOWN,
                         job->facts->teardown);
}

const struct action action_teardown = {
    .kind = DWS_ACT_TEARDOWN,
    .run = run_teardown,
    .result = workflow_result,
};

static int run_finalizer (struct job *job, const struct dws_action *wanted)
{
    return act_send (job, &action_finalizer, 0,
                     command_create_with ("drop-finalizer", "workflows",
                                          job->wf->namespace,
                                          job->wf->name,
                                          "finalizer",
                                          json_string (DWS_FINALIZER)));
}

static bool finalizer_done (struct job *job)
{
    job->wf->finalizer = false;
    return true;
}

const struct action action_finalizer = {
    .kind = DWS_ACT_FINALIZER,
    .run = run_finalizer,
    .result = workflow_result,
    .done = finalizer_done,
};

static int run_delete (struct job *job, const struct dws_action *wanted)
{
    return act_send (job, &action_delete, 0,
                     command_create ("delete", "workflows",
                                     job->wf->namespace, job->wf->name));
}

static bool delete_done (struct job *job)
{
    job->wf->deleting = true;
    return true;
}

const struct action action_delete = {
    .kind = DWS_ACT_DELETE,
    .run = run_delete,
    .result = workflow_result,
    .done = delete_done,
};

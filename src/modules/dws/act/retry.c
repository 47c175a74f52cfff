/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Stage-outs that have failed and can be tried again: see retry.h.
 */

#include <errno.h>
#include <stdio.h>

#include "libdws/facts/movements.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "act/action.h"
#include "act/retry.h"
#include "act/workflow.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "base/requests.h"
#include "base/timeline.h"
#include "facts/config.h"
#include "tell/losses.h"

/* 'value' is taken over.
 */
static json_t *command_annotate (const struct dws_workflow *wf,
                                 const char *name, json_t *value)
{
    return command_patch (wf, json_pack ("{s:{s:{s:o}}}",
                                         "metadata",
                                           "annotations",
                                             name, value));
}

static json_t *make_time (double t)
{
    char buf[32];

    snprintf (buf, sizeof (buf), "%.3f", t);
    return json_string (buf);
}

/* Since when it has failed
 */

static int run_keep (struct job *job, const struct dws_action *wanted)
{
    return act_send (job, &action_keep, 0,
                     command_annotate (job->wf, DWS_STAGE_OUT_FAILED_ANNOTATION,
                                       make_time (flux_reactor_time ())));
}

const struct action action_keep = {
    .kind = DWS_ACT_KEEP,
    .run = run_keep,
    .result = workflow_result,
};

/* Try again: delete the data movements that have failed, and when they are gone
 * the request. A module that restarts in between repeats both steps: at worst a
 * data movement that has just failed again is tried once more.
 */
enum {
    LIST_FAILED,
    DELETE_FAILED,
    END_RETRY,
};

static int run_retry (struct job *job, const struct dws_action *wanted)
{
    return act_send (job, &action_retry, LIST_FAILED,
                     command_list (job->wf, "nnfdatamovements"));
}

static bool end_retry (struct job *job)
{
    return act_send (job, &action_retry, END_RETRY,
                     command_annotate (job->wf, DWS_STAGE_OUT_RETRY_ANNOTATION,
                                       json_null ())) == 0;
}

static bool delete_failed (struct job *job, json_t *movements)
{
    json_t *failed = dws_movements_failed (movements);
    char label[JOB_LABEL_SIZE];
    json_t *movement;
    size_t index;
    bool ok = failed != NULL;

    json_array_foreach (failed, index, movement) {
        const char *namespace = "";
        const char *name = "";

        (void)json_unpack (movement, "{s:s s:s}",
                           "namespace", &namespace, "name", &name);
        if (act_send (job, &action_retry, DELETE_FAILED,
                      command_create ("delete", "nnfdatamovements",
                                      namespace, name)) < 0)
            ok = false;
    }
    safe_log (job->ctx->h, LOG_INFO, "%s: stage-out is tried again: %zu data "
              "movements", job_label (job, label), json_array_size (failed));
    if (ok && json_array_size (failed) == 0)
        ok = end_retry (job);
    json_decref (failed);
    return ok;
}

static void tell_refused (struct job *job, const char *message)
{
    double limit = job->ctx->config->policy.stage_out_retry;
    char label[JOB_LABEL_SIZE];
    dws_error_t text;

    dws_error (&text, 0, "stage-out cannot be tried again: %s", message);
    safe_log (job->ctx->h, LOG_ERR, "%s: %s", job_label (job, label), text.text);
    (void)calls_log (job->ctx,
                     losses_report (job, text.text, job->wf->failed_at + limit),
                     LOG_ERR, DWS_KEY_LOSSES);
}

/* A movement that cannot be deleted, for want of permission, stays failed. The retry
 * goes on with the others and ends then; the owner learns what has failed.
 */
static bool retry_result (struct job *job, const struct result *result)
{
    if (!result->current || !job->wf)
        return true;
    switch (result->index) {
        case LIST_FAILED:
            return result->ok && delete_failed (job, result->objects);
        case DELETE_FAILED:
            if (!result->ok)
                tell_refused (job, result->message);
            if (underway_is_last (&job->underway, DWS_ACT_RETRY))
                return end_retry (job);
            return true;
        default:
            return workflow_result (job, result);
    }
}

const struct action action_retry = {
    .kind = DWS_ACT_RETRY,
    .run = run_retry,
    .result = retry_result,
};

/* Another user's job gets the same error as one whose data is not kept.
 */

static bool may_retry (const struct flux_msg_cred *cred, const struct job *job)
{
    return (cred->rolemask & FLUX_ROLE_OWNER)
        || job->facts->userid == cred->userid;
}

static bool is_kept (const struct job *job)
{
    const struct dws_workflow *wf = job->wf;
    double limit = job->ctx->config->policy.stage_out_retry;

    return wf && !wf->deleting && wf->desired == DWS_STATE_DATAOUT
        && wf->t_failed > 0. && !job->facts->reported
        && timeline_now (job->ctx->timeline) < wf->t_failed + limit;
}

static int request_retry (struct dws_ctx *ctx, const flux_msg_t *msg,
                          dws_error_t *error)
{
    struct flux_msg_cred cred;
    struct job *job;
    json_int_t id;

    if (flux_request_unpack (msg, NULL, "{s:I}", "jobid", &id) < 0
        || flux_msg_get_cred (msg, &cred) < 0)
        return -1;
    if (!(job = jobs_find (ctx->jobs, id)) || !may_retry (&cred, job)
        || !is_kept (job))
        return dws_error (error, ENOENT, "no stage-out of that job can be tried "
                          "again");
    if (job->wf->status != DWS_STATUS_ERROR || job->wf->ready)
        return dws_error (error, EBUSY, "its stage-out is being tried again");
    return agent_forward (ctx->agent, msg,
                          command_annotate (job->wf,
                                            DWS_STAGE_OUT_RETRY_ANNOTATION,
                                            make_time (flux_reactor_time ())),
                          REQUESTS_WAITING, error);
}

void retry_cb (flux_t *h, flux_msg_handler_t *mh,
               const flux_msg_t *msg, void *arg)
{
    dws_error_t error = { "" };

    if (request_retry (arg, msg, &error) < 0)
        requests_refuse (h, msg, errno, error.text);
}

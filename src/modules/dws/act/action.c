/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See action.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/safelog.h"
#include "act/action.h"
#include "act/errorlog.h"
#include "agent/agent.h"
#include "base/timeline.h"
#include "facts/sync.h"

int act_refuse (struct job *job, const char *text)
{
    if (job->facts->refusal)
        return 0;
    if ((job->facts->refusal = strdup (text)))
        jobs_changed (job);
    else
        safe_log_error (job->ctx->h, "refusal");
    return 0;
}

/* Commands to the agent
 */

static bool take_in (struct job *job, const struct action *action,
                     const struct result *result)
{
    bool ok = action->result ? action->result (job, result) : result->ok;

    if (!ok) {
        errorlog_add (job, action->kind, result->status, result->message);
        job_set_retry_reason (job, result->message);
    }
    if (action->listed) {
        if (result->current && job->wf)
            action->listed (job, result->index,
                            !ok ? NULL
                            : result->texts ? result->texts : result->objects);
        return true;
    }
    return ok || (action->failed && action->failed (job, result));
}

static void act_result_cb (struct dws_ctx *ctx, struct job *job,
                           const struct command *cmd, json_t *report)
{
    const struct action *action = cmd->arg;
    struct result result = {
        .message = "",
        .index = cmd->index,
        .workflow = cmd->workflow,
    };
    int ok = 0;

    if (!job)
        return;
    (void)json_unpack (report, "{s?b s?i s?s s?o s?o s?o}",
                       "ok", &ok,
                       "status", &result.status,
                       "message", &result.message,
                       "object", &result.object,
                       "objects", &result.objects,
                       "texts", &result.texts);
    result.ok = ok;
    result.current = job->generation == cmd->generation;
    ok = take_in (job, action, &result);
    if (ok && action->done && job->wf && job->generation == cmd->generation
        && underway_is_last (&job->underway, action->kind))
        ok = action->done (job);
    job_end (job, action->kind, WAY_AGENT, ok);
}

int act_send (struct job *job, const struct action *action, int index,
              json_t *command)
{
    if (agent_send (job->ctx->agent, job, act_result_cb, action, index,
                    command) < 0)
        return -1;
    job_begin (job, action->kind, WAY_AGENT);
    return 0;
}

/* Requests to Flux
 */

struct job *act_job (const struct call *call)
{
    return jobs_find (call->ctx->jobs, call->jobid);
}

int act_call (struct job *job, const struct action *action, flux_future_t *f,
              call_f cb)
{
    if (calls_add_with (job->ctx, f, -1., job->facts->id, action, cb) < 0)
        return -1;
    job_begin (job, action->kind, WAY_FLUX);
    return 0;
}

void act_done_cb (const struct call *call, flux_future_t *f)
{
    const struct action *action = call->arg;
    struct job *job = act_job (call);
    bool ok = true;

    if (!job)
        return;
    if (flux_future_get (f, NULL) == 0)
        ok = !action->done || action->done (job);
    else if (errno == ENOENT) {
        if (dws_job_advance (job->facts, DWS_PHASE_GONE))
            job->facts->t_gone = timeline_now (job->ctx->timeline);
    }
    else {
        int errnum = errno;

        ok = false;
        errorlog_add (job, action->kind, errnum, future_strerror (f, errnum));
        /* The plugin may have been away and have missed changes of jobs. */
        if (errnum == ENOSYS || errnum == EHOSTUNREACH)
            sync_start (call->ctx->sync);
    }
    job_end (job, action->kind, WAY_FLUX, ok);
}

void act_tried_cb (const struct call *call, flux_future_t *f)
{
    const struct action *action = call->arg;
    struct job *job = act_job (call);

    if (!job)
        return;
    if (flux_future_get (f, NULL) < 0)
        errorlog_add (job, action->kind, errno, future_strerror (f, errno));
    job_end (job, action->kind, WAY_FLUX, true);
}

void act_end (struct job *job, const struct call *call, flux_future_t *f,
              const char *what, bool ok)
{
    const struct action *action = call->arg;
    char label[JOB_LABEL_SIZE];

    if (!ok)
        safe_log (call->ctx->h, LOG_ERR, "%s: %s: %s", job_label (job, label),
                  what, future_strerror (f, errno));
    job_end (job, action->kind, WAY_FLUX, ok);
}

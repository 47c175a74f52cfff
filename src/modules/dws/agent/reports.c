/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Takes in the agent's reports. See agent.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/facts/report.h"
#include "libdws/util/fields.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "agent/agent_private.h"
#include "agent/usage.h"
#include "base/requests.h"
#include "facts/persistent.h"
#include "facts/space.h"
#include "facts/storages.h"
#include "facts/sweeps.h"

static void unsee_job (struct job *job, void *arg)
{
    job->seen = false;
}

static void doubt_unseen (struct job *job, void *arg)
{
    if (!job->seen)
        jobs_doubt_workflow (job);
}

static void learn_workflow (struct agent *agent, struct dws_report *report)
{
    if (report->wf)
        jobs_learn_workflow (agent->ctx->jobs, report->wf,
                             dws_report_text (report->workflow),
                             report->deleted);
    else
        sweeps_learn (agent->ctx->sweeps, report->workflow, report->deleted);
    report->wf = NULL;
}

/* Learn one workflow of a snapshot.
 */
static int learn_listed (struct agent *agent, json_t *object)
{
    struct dws_ctx *ctx = agent->ctx;
    struct dws_workflow *wf = dws_workflow_decode (object, ctx->instance, NULL);

    if (wf)
        jobs_learn_workflow (ctx->jobs, wf, NULL, false);
    else if (errno == EINVAL)
        sweeps_learn (ctx->sweeps, object, false);
    else
        return -1;
    return 0;
}

/* Take in one part of a snapshot; parts leave the reactor turns for other
 * messages.
 */
static int snapshot_workflows (struct agent *agent, json_t *workflows, bool more)
{
    struct jobs *jobs = agent->ctx->jobs;
    json_t *object;
    size_t index;

    if (!agent->listing) {
        jobs_each (jobs, unsee_job, NULL);
        sweeps_unsee (agent->ctx->sweeps);
    }
    agent->listing = more;
    json_array_foreach (workflows, index, object) {
        if (learn_listed (agent, object) < 0)
            return -1;
    }
    if (more)
        return 0;
    jobs_each (jobs, doubt_unseen, NULL);
    sweeps_doubt_unseen (agent->ctx->sweeps);
    if (!agent->ready) {
        agent->ready = true;
        safe_log (agent->ctx->h, LOG_INFO, "agent attached, %zu jobs",
                  jobs_count (jobs));
        jobs_all_known (jobs, JOBS_OF_KUBERNETES);
        agent->ctx->events->agent_ready (agent->ctx);
    }
    return 0;
}

/* 'rc' is what storages_learn() or storages_list() has returned.
 */
static void note_storages (struct agent *agent, int rc)
{
    if (rc < 0)
        safe_log_error (agent->ctx->h, "storages");
    agent->ctx->events->storages_changed (agent->ctx);
}

static int take_snapshot (struct agent *agent, json_t *o)
{
    json_t *workflows = json_object_get (o, "workflows");
    json_t *storages = json_object_get (o, "storages");
    json_t *servers = json_object_get (o, "servers");
    json_t *persistent = json_object_get (o, "persistentstorageinstances");
    bool more = json_is_true (json_object_get (o, "more"));

    if (json_is_array (persistent)) {
        persistent_list (agent->ctx->persistent, persistent);
        agent->ctx->events->leases_changed (agent->ctx);
    }
    /* Storages first, because reconciling workflows needs them. */
    if (json_is_array (storages))
        note_storages (agent, storages_list (agent->ctx->storages,
                                             storages));
    usage_list (agent->ctx, servers, &agent->listing_servers, more);
    return workflows ? snapshot_workflows (agent, workflows, more) : 0;
}

static void take_event (struct agent *agent, const char *type, json_t *report)
{
    json_t *object = json_object_get (report, "object");
    const char *event = json_string_value (json_object_get (report, "event"));
    bool deleted = event && !strcmp (event, "DELETED");

    if (!strcmp (type, "storage"))
        note_storages (agent, storages_learn (agent->ctx->storages, object,
                                              deleted));
    else if (!strcmp (type, "persistent")) {
        persistent_learn (agent->ctx->persistent, object, deleted);
        agent->ctx->events->leases_changed (agent->ctx);
        if (space_known (agent->ctx->space))
            agent->ctx->events->space_changed (agent->ctx);
    }
    else
        usage_learn (agent->ctx, object, deleted);
}

int agent_result_errno (int status)
{
    switch (status) {
    case 403:
        return EACCES;
    case 404:
        return ENOENT;
    default:
        return EINVAL;
    }
}

/* The result of a command that was sent for a request (agent_forward()) is the
 * answer to that request.
 */
static void answer_request (struct command *cmd, json_t *report)
{
    const char *message = NULL;
    json_t *objects = NULL;
    int status = 0;
    int ok = 0;
    int rc;

    (void)json_unpack (report, "{s?b s?i s?s s?o}", "ok", &ok,
                       "status", &status, "message", &message,
                       "objects", &objects);
    if (ok && objects)
        rc = flux_respond_pack (cmd->h, cmd->request, "{s:O}",
                                "objects", objects);
    else if (ok)
        rc = flux_respond (cmd->h, cmd->request, NULL);
    else
        rc = flux_respond_error (cmd->h, cmd->request,
                                 agent_result_errno (status), message);
    if (rc < 0)
        safe_log_error (cmd->h, "response");
    flux_msg_decref (cmd->request);
    cmd->request = NULL;
}

/* Learn the workflow in any result, also that of an abandoned command: the
 * agent does not report that version again.
 */
static void learn_result (struct agent *agent, struct dws_report *report)
{
    if (agent->ready && report->workflow)
        learn_workflow (agent, report);
}

static void take_result (struct agent *agent, struct dws_report *report)
{
    json_int_t seq = json_integer_value (json_object_get (report->o, "seq"));
    struct command *cmd;
    struct job *job;

    if (seq > 0 && (cmd = idmap_take (agent->commands, seq))) {
        job = jobs_find (agent->ctx->jobs, cmd->jobid);
        /* Do not learn the workflow of a forgotten job: its record would come
         * back. */
        if (job || cmd->request)
            learn_result (agent, report);
        if (job && !cmd->is_query)
            job_set_retry_reason (job, NULL);
        if (cmd->request)
            answer_request (cmd, report->o);
        else {
            cmd->workflow = report->workflow;
            cmd->cb (agent->ctx, job, cmd, report->o);
        }
        command_destroy (cmd);
    }
    else
        learn_result (agent, report);
}

static void take_health (struct agent *agent, json_t *report)
{
    bool ok = json_is_true (json_object_get (report, "ok"));
    const char *message = json_string_value (json_object_get (report,
                                                              "message"));

    if (ok != agent->reachable)
        safe_log (agent->ctx->h, ok ? LOG_INFO : LOG_ERR,
                  "Kubernetes is %s%s%s", ok ? "back" : "out of reach",
                  message && *message ? ": " : "", message ? message : "");
    if (ok && !agent->reachable)
        jobs_hasten (agent->ctx->jobs);
    agent->reachable = ok;
    free (agent->trouble);
    agent->trouble = !ok && message && *message ? strdup (message) : NULL;
    agent->ctx->events->link_changed (agent->ctx);
}

/* The agent repeats a command: the job waits, and its owner may see why.
 */
static void take_trouble (struct agent *agent, json_t *report)
{
    json_int_t seq = json_integer_value (json_object_get (report, "seq"));
    json_t *message = json_object_get (report, "message");
    struct command *cmd;
    struct job *job;

    if (seq > 0
        && json_is_string (message)
        && (cmd = idmap_find (agent->commands, seq))
        && !cmd->is_query
        && (job = jobs_find (agent->ctx->jobs, cmd->jobid))) {
        job_set_retry_reason (job, json_string_value (message));
        agent->ctx->events->job_changed (job);
    }
}

static void take_stats (struct agent *agent, json_t *report)
{
    json_decref (agent->stats);
    agent->stats = json_incref (json_object_get (report, "stats"));
}

static int take_report (struct agent *agent, struct dws_report *report)
{
    const char *type = report->type;

    if (report->malformed)
        safe_log (agent->ctx->h, LOG_ERR, "report '%s' can not be read: %s", type,
                  report->fault.text);
    if (!strcmp (type, "result"))
        take_result (agent, report);
    else if (report->malformed) {
        errno = EPROTO;
        return strcmp (type, "snapshot") == 0 ? -1 : 0;
    }
    else if (!strcmp (type, "workflow")) {
        if (agent->ready)
            learn_workflow (agent, report);
    }
    else if (!strcmp (type, "storage") || !strcmp (type, "persistent")
             || !strcmp (type, "servers"))
        take_event (agent, type, report->o);
    else if (!strcmp (type, "snapshot"))
        return take_snapshot (agent, report->o);
    else if (!strcmp (type, "health"))
        take_health (agent, report->o);
    else if (!strcmp (type, "trouble"))
        take_trouble (agent, report->o);
    else if (!strcmp (type, "stats"))
        take_stats (agent, report->o);
    else
        safe_log (agent->ctx->h, LOG_DEBUG, "unknown report '%s'", type);
    return 0;
}

/* Skip a malformed report and take in those after it.
 */
static int take_reports (struct agent *agent, json_t *reports)
{
    json_t *o;
    size_t index;

    json_array_foreach (reports, index, o) {
        struct dws_report report;
        int rc;

        if (dws_report_read (&report, o, agent->ctx->instance) < 0)
            return -1;
        rc = take_report (agent, &report);
        ERRNO_SAFE (dws_report_clear (&report));
        if (rc < 0)
            return -1;
    }
    return 0;
}

static const struct dws_field request_fields[] = {
    DWS_REQUIRED ("reports", ARRAY),
    { 0 },
};

void agent_report_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    dws_error_t error = { "" };
    json_t *o = NULL;

    if (flux_request_unpack (msg, NULL, "o", &o) < 0 && errno != EPROTO)
        goto error;
    if (dws_fields_check (o, request_fields, &error) < 0)
        goto error;
    if (!ctx->agent->request
        || !flux_disconnect_match (msg, ctx->agent->request)) {
        dws_error (&error, ESTALE, "this agent is not attached");
        goto error;
    }
    if (take_reports (ctx->agent, json_object_get (o, "reports")) < 0)
        goto error;
    jobs_keep_up (ctx->jobs);
    if (flux_respond (h, msg, NULL) < 0)
        safe_log_error (h, DWS_TOPIC_REPORT);
    return;
error:
    requests_refuse (h, msg, errno, error.text);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See agent.h.
 *
 * Nothing is queued while no agent is attached: after an agent's snapshot every
 * job is looked at again. Sequence numbers go on across attachments, so that a
 * late result from an earlier agent can not be taken for one from the present
 * agent.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/facts/report.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "agent/agent.h"
#include "agent/outbox.h"
#include "agent/usage.h"
#include "base/idmap.h"
#include "facts/config.h"
#include "facts/persistent.h"
#include "facts/sweeps.h"
#include "facts/space.h"
#include "facts/storages.h"

/* An agent of a neighbouring release is served in the newest version that both
 * speak; a version that no release of a site speaks any more is dropped here.
 */
#define PROTOCOL_NEWEST 1
#define PROTOCOL_OLDEST 1

struct agent {
    struct dws_ctx *ctx;
    const flux_msg_t *request;  // of the attached agent, or NULL
    bool ready;
    bool listing;               // in the middle of a snapshot
    bool listing_servers;       // of these
    bool reachable;             // the API server, as the agent sees it
    uint64_t seq;
    struct idmap *commands;     // seq -> struct command
    struct outbox *outbox;      // those that are to be sent
    json_t *stats;              // what the agent counts, or NULL
    char *release;              // of the agent, or NULL
    struct dws_reports *reports;
};

/* A request whose agent is lost may have been carried out or not.
 */
static void command_destroy (void *value)
{
    struct command *cmd = value;

    if (cmd) {
        ERRNO_SAFE_BLOCK;
        if (cmd->request
            && flux_respond_error (cmd->h, cmd->request, ECONNRESET,
                                   "the agent went away before it had a "
                                   "result") < 0)
            flux_log_error (cmd->h, "response");
        flux_msg_decref (cmd->request);
        free (cmd);
    }
}

static void detach_agent (struct agent *agent, int errnum, const char *text)
{
    flux_t *h = agent->ctx->h;

    if (!agent->request)
        return;
    if (errnum && flux_respond_error (h, agent->request, errnum, text) < 0)
        flux_log_error (h, DWS_TOPIC_AGENT);
    outbox_close (agent->outbox);
    flux_msg_decref (agent->request);
    agent->request = NULL;
    agent->ready = false;
    agent->listing = false;
    agent->listing_servers = false;
    json_decref (agent->stats);
    agent->stats = NULL;
    free (agent->release);
    agent->release = NULL;
    idmap_clear (agent->commands);
    jobs_agent_lost (agent->ctx->jobs);
    agent->ctx->events->agent_lost (agent->ctx);
}

/* An agent that attaches anew is told what is to be done then.
 */
static void agent_unsent (void *arg)
{
    struct agent *agent = arg;

    flux_log_error (agent->ctx->h, "commands");
    detach_agent (agent, EAGAIN, "commands could not be sent");
}

struct agent *agent_create (struct dws_ctx *ctx)
{
    struct agent *agent;

    if (!(agent = calloc (1, sizeof (*agent))))
        return NULL;
    agent->ctx = ctx;
    agent->reachable = true;
    if (!(agent->commands = idmap_create (command_destroy))
        || !(agent->outbox = outbox_create (ctx->h, agent_unsent, agent))
        || !(agent->reports = dws_reports_create (ctx->instance))) {
        agent_destroy (agent);
        errno = ENOMEM;
        return NULL;
    }
    return agent;
}

void agent_destroy (struct agent *agent)
{
    if (agent) {
        ERRNO_SAFE_BLOCK;
        if (agent->request) {
            /* The agent attaches again, to the module that is loaded next. */
            flux_respond_error (agent->ctx->h, agent->request, ENOSYS,
                                "the dws module is unloaded");
            flux_msg_decref (agent->request);
        }
        outbox_destroy (agent->outbox);
        idmap_destroy (agent->commands);
        json_decref (agent->stats);
        free (agent->release);
        dws_reports_destroy (agent->reports);
        free (agent);
    }
}

bool agent_ready (const struct agent *agent)
{
    return agent->ready;
}

const char *agent_release (const struct agent *agent)
{
    return agent->release;
}

json_t *agent_status (const struct agent *agent)
{
    return json_pack ("{s:b s:b s:b s:i s:O*}",
                      "attached", agent->request != NULL,
                      "synced", agent->ready,
                      "reachable", agent->reachable,
                      "commands", (int)idmap_count (agent->commands),
                      "api", agent->stats);
}

/* Takes over 'cmd' and 'command', either of which may be NULL.
 */
static int send_command (struct agent *agent, struct command *cmd,
                         json_t *command)
{
    if (!command || !cmd) {
        errno = ENOMEM;
        goto error;
    }
    if (!agent->request) {
        errno = EAGAIN;
        goto error;
    }
    cmd->seq = ++agent->seq;
    if (json_object_set_new (command, "seq", json_integer (cmd->seq)) < 0
        || idmap_insert (agent->commands, cmd->seq, cmd) < 0) {
        errno = ENOMEM;
        goto error;
    }
    if (outbox_put (agent->outbox, command) < 0) {
        ERRNO_SAFE (idmap_take (agent->commands, cmd->seq));
        goto error;
    }
    json_decref (command);
    return 0;
error:
    ERRNO_SAFE (free (cmd));
    ERRNO_SAFE (json_decref (command));
    return -1;
}

static struct command *command_for (struct job *job, command_f cb)
{
    struct command *cmd;

    if (!(cmd = calloc (1, sizeof (*cmd))))
        return NULL;
    cmd->cb = cb;
    if (job) {
        cmd->jobid = job->facts->id;
        cmd->generation = job->generation;
    }
    return cmd;
}

int agent_send (struct agent *agent,
                struct job *job,
                command_f cb,
                const void *arg,
                int index,
                json_t *command)
{
    struct command *cmd;

    if ((cmd = command_for (job, cb))) {
        cmd->arg = arg;
        cmd->index = index;
    }
    return send_command (agent, cmd, command);
}

int agent_query (struct agent *agent,
                 struct job *job,
                 command_f cb,
                 json_t *command)
{
    struct command *cmd;

    if ((cmd = command_for (job, cb)))
        cmd->is_query = true;
    return send_command (agent, cmd, command);
}

enum dws_link agent_link (const struct agent *agent)
{
    if (!agent->request)
        return DWS_LINK_NO_AGENT;
    return agent->reachable && agent->ready ? DWS_LINK_UP : DWS_LINK_NO_SERVER;
}

int agent_forward (struct agent *agent,
                   const flux_msg_t *request,
                   json_t *command)
{
    struct command *cmd;

    cmd = calloc (1, sizeof (*cmd));
    if (send_command (agent, cmd, command) < 0)
        return -1;
    cmd->h = agent->ctx->h;
    cmd->request = flux_msg_incref (request);
    return 0;
}

/* The newest version that we and an agent have in common, which has those from
 * 'oldest' to 'newest'. Returns -1 with errno = EPROTO if there is none.
 */
static int common_version (int newest, int oldest, const char *release,
                           dws_error_t *error)
{
    int version = newest < PROTOCOL_NEWEST ? newest : PROTOCOL_NEWEST;

    if (version >= oldest && version >= PROTOCOL_OLDEST)
        return version;
    return dws_error (error, EPROTO,
                      "the agent (release %s) speaks versions %d to %d of the "
                      "protocol, module dws (release %s) speaks %d to %d: update "
                      "the %s",
                      release ? release : "unknown", oldest, newest,
                      DWS_RELEASE, PROTOCOL_OLDEST, PROTOCOL_NEWEST,
                      newest < PROTOCOL_OLDEST ? "agent" : "module");
}

void agent_attach_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    struct agent *agent = ctx->agent;
    dws_error_t error = { "" };
    const char *release = NULL;
    json_t *config;
    int newest;
    int oldest = -1;
    int batches = 0;
    int version;

    if (flux_request_unpack (msg, NULL, "{s:i s?i s?s s?b}",
                             "version", &newest,
                             "oldest", &oldest,
                             "release", &release,
                             "batches", &batches) < 0)
        goto error;
    if (!flux_msg_is_streaming (msg)) {
        dws_error (&error, EPROTO, "dws.agent is a streaming request");
        goto error;
    }
    version = common_version (newest, oldest < 0 ? newest : oldest, release,
                              &error);
    if (version < 0)
        goto error;
    if (agent->request)
        flux_log (h, LOG_INFO, "a newer agent replaces the one attached");
    detach_agent (agent, ESTALE, "replaced by a newer agent");
    if (!(config = dws_config_agent (ctx->config)))
        goto error;
    if (flux_respond_pack (h, msg, "{s:s s:i s:[s s] s:s s:s s:o}",
                           "op", "hello",
                           "version", version,
                           "parts", "servers", "workflows",
                           "release", DWS_RELEASE,
                           "instance", ctx->instance,
                           "config", config) < 0) {
        flux_log_error (h, DWS_TOPIC_AGENT);
        return;
    }
    agent->request = flux_msg_incref (msg);
    outbox_open (agent->outbox, msg, batches);
    agent->release = release ? strdup (release) : NULL;
    agent->reachable = true;
    return;
error:
    if (flux_respond_error (h, msg, errno, error.text[0] ? error.text : NULL) < 0)
        flux_log_error (h, DWS_TOPIC_AGENT);
}

void agent_reconfigure (struct agent *agent)
{
    detach_agent (agent, EAGAIN, "the configuration has changed");
}

void agent_disconnect (struct agent *agent, const flux_msg_t *msg)
{
    if (agent->request && flux_disconnect_match (msg, agent->request)) {
        flux_log (agent->ctx->h, LOG_INFO, "the agent is gone");
        detach_agent (agent, 0, NULL);
    }
}

/* Reports
 */

static void unsee_job (struct job *job, void *arg)
{
    job->seen = false;
}

static void forget_unseen (struct job *job, void *arg)
{
    if (!job->seen)
        jobs_forget_workflow (job);
}

static void learn_workflow (struct agent *agent, struct dws_report *report)
{
    if (report->wf)
        jobs_learn_workflow (agent->ctx->jobs, report->wf, report->workflow,
                             report->deleted);
    else
        sweeps_learn (agent->ctx->sweeps, report->workflow, report->deleted);
    report->wf = NULL;
}

/* One of a snapshot.
 */
static int learn_listed (struct agent *agent, struct dws_text text)
{
    struct dws_ctx *ctx = agent->ctx;
    struct dws_workflow *wf = dws_workflow_decode (text, ctx->instance, NULL);

    if (wf)
        jobs_learn_workflow (ctx->jobs, wf, dws_text (NULL), false);
    else if (errno == EINVAL)
        sweeps_learn (ctx->sweeps, text, false);
    else
        return -1;
    return 0;
}

static int learn_all (struct agent *agent, struct dws_text workflows)
{
    struct dws_text text;
    size_t at = 0;
    int rc;

    while ((rc = dws_text_next (workflows, &at, NULL, &text)) > 0) {
        if (learn_listed (agent, text) < 0)
            return -1;
    }
    return rc;
}

/* A snapshot comes in parts, so that nobody has to wait for all of it.
 */
static int snapshot_workflows (struct agent *agent, struct dws_text workflows,
                               bool more)
{
    struct jobs *jobs = agent->ctx->jobs;

    if (!agent->listing) {
        jobs_each (jobs, unsee_job, NULL);
        sweeps_unsee (agent->ctx->sweeps);
    }
    agent->listing = more;
    if (learn_all (agent, workflows) < 0)
        return -1;
    if (more)
        return 0;
    jobs_each (jobs, forget_unseen, NULL);
    sweeps_forget_unseen (agent->ctx->sweeps);
    if (!agent->ready) {
        agent->ready = true;
        flux_log (agent->ctx->h, LOG_INFO, "agent attached, %zu jobs",
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
        flux_log_error (agent->ctx->h, "storages");
    agent->ctx->events->storages_changed (agent->ctx);
}

static int take_snapshot (struct agent *agent, const struct dws_report *report)
{
    json_t *o = report->o;
    json_t *storages = json_object_get (o, "storages");
    json_t *servers = json_object_get (o, "servers");
    json_t *persistent = json_object_get (o, "persistentstorageinstances");
    bool more = json_is_true (json_object_get (o, "more"));

    if (json_is_array (persistent)) {
        persistent_list (agent->ctx->persistent, persistent);
        agent->ctx->events->leases_changed (agent->ctx);
    }
    /* Storages first, as decisions about workflows look at them. */
    if (json_is_array (storages))
        note_storages (agent, storages_list (agent->ctx->storages,
                                             storages));
    usage_list (agent->ctx, servers, &agent->listing_servers, more);
    if (!json_is_array (json_object_get (o, "workflows")))
        return 0;
    return snapshot_workflows (agent, report->workflows, more);
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
    int status = 0;
    int ok = 0;
    int rc;

    (void)json_unpack (report, "{s?b s?i s?s}", "ok", &ok,
                       "status", &status, "message", &message);
    if (ok)
        rc = flux_respond (cmd->h, cmd->request, NULL);
    else
        rc = flux_respond_error (cmd->h, cmd->request,
                                 agent_result_errno (status), message);
    if (rc < 0)
        flux_log_error (cmd->h, "response");
    flux_msg_decref (cmd->request);
    cmd->request = NULL;
}

/* The agent does not report a change of a workflow once more if the result of a
 * command has shown it, whatever that was for, also if it was given up.
 */
static void learn_result (struct agent *agent, struct dws_report *report)
{
    if (agent->ready && report->workflow.s)
        learn_workflow (agent, report);
}

static void take_result (struct agent *agent, struct dws_report *report)
{
    json_int_t seq = json_integer_value (json_object_get (report->o, "seq"));
    struct command *cmd;
    struct job *job;

    if (seq > 0 && (cmd = idmap_take (agent->commands, seq))) {
        job = jobs_find (agent->ctx->jobs, cmd->jobid);
        /* What is known of no job any more is not to come back as an orphan. */
        if (job || cmd->request)
            learn_result (agent, report);
        if (job && !cmd->is_query)
            job_set_trouble (job, NULL);
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
        flux_log (agent->ctx->h, ok ? LOG_INFO : LOG_ERR,
                  "Kubernetes is %s%s%s", ok ? "back" : "out of reach",
                  message && *message ? ": " : "", message ? message : "");
    if (ok && !agent->reachable)
        jobs_hasten (agent->ctx->jobs);
    agent->reachable = ok;
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
        job_set_trouble (job, json_string_value (message));
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
    const char *type = json_string_value (json_object_get (report->o, "type"));

    if (!report->o) {
        if (agent->ready)
            learn_workflow (agent, report);
        return 0;
    }
    if (!type)
        type = "";
    if (!strcmp (type, "result"))
        take_result (agent, report);
    else if (!strcmp (type, "storage") || !strcmp (type, "persistent")
             || !strcmp (type, "servers"))
        take_event (agent, type, report->o);
    else if (!strcmp (type, "snapshot"))
        return take_snapshot (agent, report);
    else if (!strcmp (type, "health"))
        take_health (agent, report->o);
    else if (!strcmp (type, "trouble"))
        take_trouble (agent, report->o);
    else if (!strcmp (type, "stats"))
        take_stats (agent, report->o);
    else
        flux_log (agent->ctx->h, LOG_DEBUG, "unknown report '%s'", type);
    return 0;
}

/* One by one: all of them as values would be large.
 */
static int take_reports (struct agent *agent, const char *payload)
{
    struct dws_report *report;
    int rc;

    if (dws_reports_begin (agent->reports, payload) < 0)
        return -1;
    while ((rc = dws_reports_next (agent->reports, &report)) > 0) {
        if (take_report (agent, report) < 0)
            return -1;
    }
    return rc;
}

void agent_report_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    const char *errstr = NULL;
    const char *payload;

    if (flux_request_decode (msg, NULL, &payload) < 0)
        goto error;
    if (!ctx->agent->request
        || !flux_disconnect_match (msg, ctx->agent->request)) {
        errno = ESTALE;
        errstr = "this agent is not attached";
        goto error;
    }
    if (take_reports (ctx->agent, payload) < 0) {
        if (errno == EINVAL)
            errno = EPROTO;
        goto error;
    }
    jobs_keep_up (ctx->jobs);
    if (flux_respond (h, msg, NULL) < 0)
        flux_log_error (h, DWS_TOPIC_REPORT);
    return;
error:
    if (flux_respond_error (h, msg, errno, errstr) < 0)
        flux_log_error (h, DWS_TOPIC_REPORT);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See agent.h.
 *
 * Nothing is queued for an agent that is not there: after its snapshot every
 * job is looked at again. Sequence numbers go on across attachments, so that
 * a late result of an older one can not be taken for one of the newer.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "actions.h"
#include "agent.h"
#include "annotate.h"
#include "config.h"
#include "health.h"
#include "idmap.h"
#include "usage.h"
#include "persistent.h"
#include "token.h"

#define PROTOCOL_VERSION 1

struct agent {
    struct dws_ctx *ctx;
    const flux_msg_t *request;  // of the attached agent, or NULL
    bool ready;
    bool listing;               // in the middle of a snapshot
    bool reachable;             // the API server, as the agent sees it
    uint64_t seq;
    struct idmap *commands;     // seq -> struct command
    json_t *storages;           // name -> object
    json_t *stats;              // what the agent counts, or NULL
};

/* A request that loses its agent may have been carried out or not.
 */
static void command_destroy (void *value)
{
    struct command *cmd = value;

    if (cmd) {
        int saved_errno = errno;
        if (cmd->request
            && flux_respond_error (cmd->h, cmd->request, ECONNRESET,
                                   "the agent went away before it had a "
                                   "result") < 0)
            flux_log_error (cmd->h, "response");
        flux_msg_decref (cmd->request);
        free (cmd);
        errno = saved_errno;
    }
}

static void detach (struct agent *agent, int errnum, const char *text)
{
    flux_t *h = agent->ctx->h;

    if (!agent->request)
        return;
    if (errnum && flux_respond_error (h, agent->request, errnum, text) < 0)
        flux_log_error (h, "dws.agent");
    flux_msg_decref (agent->request);
    agent->request = NULL;
    agent->ready = false;
    agent->listing = false;
    json_decref (agent->stats);
    agent->stats = NULL;
    idmap_clear (agent->commands);
    jobs_agent_lost (agent->ctx->jobs);
    annotate_agent_lost (agent->ctx->annotate);
    tokens_agent_lost (agent->ctx->tokens);
}

struct agent *agent_create (struct dws_ctx *ctx)
{
    struct agent *agent;

    if (!(agent = calloc (1, sizeof (*agent))))
        return NULL;
    agent->ctx = ctx;
    agent->reachable = true;
    if (!(agent->commands = idmap_create (command_destroy))
        || !(agent->storages = json_object ())) {
        agent_destroy (agent);
        errno = ENOMEM;
        return NULL;
    }
    return agent;
}

void agent_destroy (struct agent *agent)
{
    if (agent) {
        int saved_errno = errno;
        if (agent->request) {
            /* The agent attaches again, to the next one loaded. */
            flux_respond_error (agent->ctx->h, agent->request, ENOSYS,
                                "the dws module is unloaded");
            flux_msg_decref (agent->request);
        }
        idmap_destroy (agent->commands);
        json_decref (agent->storages);
        json_decref (agent->stats);
        free (agent);
        errno = saved_errno;
    }
}

bool agent_ready (const struct agent *agent)
{
    return agent->ready;
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

json_t *agent_storages (const struct agent *agent)
{
    const char *name;
    json_t *object;
    json_t *array;

    if (json_object_size (agent->storages) == 0
        || !(array = json_array ()))
        return NULL;
    json_object_foreach (agent->storages, name, object) {
        if (json_array_append (array, object) < 0) {
            json_decref (array);
            return NULL;
        }
    }
    return array;
}

json_t *agent_storages_by_name (const struct agent *agent)
{
    return agent->storages;
}

/* Takes over 'cmd' and 'command', either of which may be NULL.
 */
static int send_command (struct agent *agent, struct command *cmd,
                         json_t *command)
{
    int saved_errno = ENOMEM;

    if (!command || !cmd)
        goto error;
    if (!agent->request) {
        saved_errno = EAGAIN;
        goto error;
    }
    cmd->seq = ++agent->seq;
    if (json_object_set_new (command, "seq", json_integer (cmd->seq)) < 0
        || idmap_insert (agent->commands, cmd->seq, cmd) < 0)
        goto error;
    if (flux_respond_pack (agent->ctx->h, agent->request, "O", command) < 0) {
        saved_errno = errno;
        (void)idmap_take (agent->commands, cmd->seq);
        goto error;
    }
    json_decref (command);
    return 0;
error:
    free (cmd);
    json_decref (command);
    errno = saved_errno;
    return -1;
}

static struct command *command_for (struct job *job)
{
    struct command *cmd;

    if ((cmd = calloc (1, sizeof (*cmd))) && job) {
        cmd->jobid = job->facts->id;
        cmd->generation = job->generation;
    }
    return cmd;
}

int agent_send (struct agent *agent,
                struct job *job,
                enum dws_action_kind kind,
                int index,
                json_t *command)
{
    struct command *cmd;

    if ((cmd = command_for (job))) {
        cmd->kind = kind;
        cmd->index = index;
    }
    if (send_command (agent, cmd, command) < 0)
        return -1;
    job_begin (job, kind);
    return 0;
}

int agent_query (struct agent *agent,
                 struct job *job,
                 query_f query,
                 json_t *command)
{
    struct command *cmd;

    if ((cmd = command_for (job)))
        cmd->query = query;
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

void agent_attach_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    struct agent *agent = ctx->agent;
    const char *errstr = NULL;
    json_t *config;
    int version;

    if (flux_request_unpack (msg, NULL, "{s:i}", "version", &version) < 0)
        goto error;
    if (!flux_msg_is_streaming (msg)) {
        errno = EPROTO;
        errstr = "dws.agent is a streaming request";
        goto error;
    }
    if (version != PROTOCOL_VERSION) {
        errno = EPROTO;
        errstr = "agent and module are of different versions";
        goto error;
    }
    if (agent->request)
        flux_log (h, LOG_INFO, "a newer agent replaces the one attached");
    detach (agent, ESTALE, "replaced by a newer agent");
    if (!(config = dws_config_agent (ctx->config)))
        goto error;
    if (flux_respond_pack (h, msg, "{s:s s:i s:s s:o}",
                           "op", "hello",
                           "version", PROTOCOL_VERSION,
                           "instance", ctx->instance,
                           "config", config) < 0) {
        flux_log_error (h, "dws.agent");
        return;
    }
    agent->request = flux_msg_incref (msg);
    agent->reachable = true;
    return;
error:
    if (flux_respond_error (h, msg, errno, errstr) < 0)
        flux_log_error (h, "dws.agent");
}

void agent_reconfigure (struct agent *agent)
{
    detach (agent, EAGAIN, "the configuration has changed");
}

void agent_disconnect (struct agent *agent, const flux_msg_t *msg)
{
    if (agent->request && flux_disconnect_match (msg, agent->request)) {
        flux_log (agent->ctx->h, LOG_INFO, "the agent is gone");
        detach (agent, 0, NULL);
    }
}

/* Reports
 */

static void unsee (struct job *job, void *arg)
{
    job->seen = false;
}

static void forget_unseen (struct job *job, void *arg)
{
    if (!job->seen)
        jobs_forget_workflow (job);
}

/* A snapshot comes in parts, so that nobody has to wait for all of it.
 */
static void snapshot_workflows (struct agent *agent, json_t *workflows,
                                bool more)
{
    struct jobs *jobs = agent->ctx->jobs;
    json_t *object;
    size_t index;

    if (!agent->listing)
        jobs_each (jobs, unsee, NULL);
    agent->listing = more;
    json_array_foreach (workflows, index, object)
        jobs_learn_workflow (jobs, object, false);
    if (more)
        return;
    jobs_each (jobs, forget_unseen, NULL);
    if (!agent->ready) {
        agent->ready = true;
        flux_log (agent->ctx->h, LOG_INFO, "agent attached, %zu jobs",
                  jobs_count (jobs));
        usage_start (agent->ctx);
        jobs_changed_all (jobs);
        tokens_retry (agent->ctx->tokens);
        health_agent_attached (agent->ctx->health);
    }
}

static void learn_storage (struct agent *agent, json_t *object, bool deleted)
{
    const char *name = NULL;

    if (json_unpack (object, "{s:{s:s}}", "metadata", "name", &name) < 0)
        return;
    if (deleted)
        json_object_del (agent->storages, name);
    else if (json_object_set (agent->storages, name, object) < 0)
        flux_log (agent->ctx->h, LOG_ERR, "storage %s: out of memory", name);
}

static void take_snapshot (struct agent *agent, json_t *report)
{
    json_t *storages = json_object_get (report, "storages");
    json_t *workflows = json_object_get (report, "workflows");
    json_t *persistent = json_object_get (report,
                                          "persistentstorageinstances");
    json_t *object;
    size_t index;

    if (json_is_array (persistent))
        persistent_list (agent->ctx->persistent, persistent);
    /* First, as the workflows' decisions look at them. */
    if (json_is_array (storages)) {
        json_object_clear (agent->storages);
        json_array_foreach (storages, index, object)
            learn_storage (agent, object, false);
        health_changed (agent->ctx->health);
    }
    if (json_is_array (workflows))
        snapshot_workflows (agent, workflows,
                            json_is_true (json_object_get (report, "more")));
}

static void take_event (struct agent *agent, const char *type, json_t *report)
{
    json_t *object = json_object_get (report, "object");
    const char *event = json_string_value (json_object_get (report, "event"));
    bool deleted = event && !strcmp (event, "DELETED");

    if (!strcmp (type, "storage")) {
        learn_storage (agent, object, deleted);
        health_changed (agent->ctx->health);
    }
    else if (!strcmp (type, "persistent"))
        persistent_learn (agent->ctx->persistent, object, deleted);
    else if (agent->ready)
        jobs_learn_workflow (agent->ctx->jobs, object, deleted);
}

/* The result of a command that somebody asked for is his answer.
 */
static void answer (struct command *cmd, json_t *report)
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
                                 status == 404 ? ENOENT
                                 : status == 403 ? EACCES : EINVAL, message);
    if (rc < 0)
        flux_log_error (cmd->h, "response");
    flux_msg_decref (cmd->request);
    cmd->request = NULL;
}

static void forget_trouble (struct dws_ctx *ctx, uint64_t jobid)
{
    struct job *job = jobs_find (ctx->jobs, jobid);

    if (job)
        job_set_trouble (job, NULL);
}

/* The agent does not report a change once more that a result has shown.
 */
static void learn_result (struct agent *agent, json_t *report)
{
    json_t *object = json_object_get (report, "object");
    const char *kind = json_string_value (json_object_get (object, "kind"));

    if (agent->ready && kind && !strcmp (kind, "Workflow"))
        jobs_learn_workflow (agent->ctx->jobs, object, false);
}

static void take_result (struct agent *agent, json_t *report)
{
    json_int_t seq = json_integer_value (json_object_get (report, "seq"));
    struct command *cmd;

    if (seq > 0 && (cmd = idmap_take (agent->commands, seq))) {
        if (cmd->request || cmd->query)
            learn_result (agent, report);
        if (cmd->request)
            answer (cmd, report);
        else if (cmd->query)
            cmd->query (agent->ctx, jobs_find (agent->ctx->jobs, cmd->jobid),
                        cmd, report);
        else {
            forget_trouble (agent->ctx, cmd->jobid);
            actions_result (agent->ctx, cmd, report);
        }
        command_destroy (cmd);
    }
    /* Also of a command that nobody waits for any more. */
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
    agent->reachable = ok;
    annotate_start (agent->ctx->annotate);
}

/* A command is being repeated: the job waits, and its owner may see why.
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
        && !cmd->query
        && (job = jobs_find (agent->ctx->jobs, cmd->jobid))) {
        job_set_trouble (job, json_string_value (message));
        annotate_start (agent->ctx->annotate);
    }
}

static void take_stats (struct agent *agent, json_t *report)
{
    json_decref (agent->stats);
    agent->stats = json_incref (json_object_get (report, "stats"));
}

static void take_report (struct agent *agent, json_t *report)
{
    const char *type = json_string_value (json_object_get (report, "type"));

    if (!type)
        type = "";
    if (!strcmp (type, "result"))
        take_result (agent, report);
    else if (!strcmp (type, "workflow") || !strcmp (type, "storage")
             || !strcmp (type, "persistent"))
        take_event (agent, type, report);
    else if (!strcmp (type, "snapshot"))
        take_snapshot (agent, report);
    else if (!strcmp (type, "health"))
        take_health (agent, report);
    else if (!strcmp (type, "trouble"))
        take_trouble (agent, report);
    else if (!strcmp (type, "stats"))
        take_stats (agent, report);
    else
        flux_log (agent->ctx->h, LOG_DEBUG, "unknown report '%s'", type);
}

void agent_report_cb (flux_t *h, flux_msg_handler_t *mh,
                      const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    const char *errstr = NULL;
    json_t *reports;
    json_t *report;
    size_t index;

    if (flux_request_unpack (msg, NULL, "{s:o}", "reports", &reports) < 0)
        goto error;
    if (!ctx->agent->request
        || !flux_disconnect_match (msg, ctx->agent->request)) {
        errno = ESTALE;
        errstr = "this agent is not attached";
        goto error;
    }
    json_array_foreach (reports, index, report)
        take_report (ctx->agent, report);
    jobs_keep_up (ctx->jobs);
    if (flux_respond (h, msg, NULL) < 0)
        flux_log_error (h, "dws.report");
    return;
error:
    if (flux_respond_error (h, msg, errno, errstr) < 0)
        flux_log_error (h, "dws.report");
}

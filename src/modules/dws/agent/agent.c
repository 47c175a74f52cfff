/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See agent.h.
 *
 * No command is queued while no agent is attached, since every job is
 * reconciled again after an agent's snapshot. Sequence numbers continue across
 * attachments, so that a late result from an earlier agent is not taken for one
 * from the present agent.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "agent/agent_private.h"
#include "base/requests.h"
#include "facts/config.h"

/* An agent of a neighbouring release gets the newest version that both support.
 * Drop a version here once no supported release needs it.
 */
#define PROTOCOL_NEWEST 2
#define PROTOCOL_OLDEST 2

/* Answer a pending request with ECONNRESET: whether the agent executed the
 * command is unknown.
 */
void command_destroy (void *value)
{
    struct command *cmd = value;

    if (cmd) {
        ERRNO_SAFE_BLOCK;
        if (cmd->request)
            requests_refuse (cmd->h, cmd->request, ECONNRESET,
                             "the agent went away before it had a result");
        flux_msg_decref (cmd->request);
        free (cmd);
    }
}

static void detach_agent (struct agent *agent, int errnum, const char *text)
{
    flux_t *h = agent->ctx->h;

    if (!agent->request)
        return;
    if (errnum)
        requests_refuse (h, agent->request, errnum, text);
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

/* Commands that were not sent are lost: end the connection, as every job is
 * reconciled when the agent attaches again.
 */
static void agent_unsent (void *arg)
{
    struct agent *agent = arg;

    safe_log_error (agent->ctx->h, "commands");
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
        || !(agent->outbox = outbox_create (ctx->h, agent_unsent, agent))) {
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
        free (agent->trouble);
        free (agent->release);
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

json_t *agent_status (const struct agent *agent, bool owner)
{
    return json_pack ("{s:b s:b s:b s:s* s:i s:O*}",
                      "attached", agent->request != NULL,
                      "synced", agent->ready,
                      "reachable", agent->reachable,
                      "trouble", owner ? agent->trouble : NULL,
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
                   json_t *command,
                   size_t most,
                   dws_error_t *error)
{
    struct command *cmd = NULL;
    const flux_msg_t *kept;

    if (!(kept = requests_keep (agent->ctx->requests, request, most,
                                error))) {
        ERRNO_SAFE (json_decref (command));
        return -1;
    }
    cmd = calloc (1, sizeof (*cmd));
    if (send_command (agent, cmd, command) < 0) {
        ERRNO_SAFE (flux_msg_decref (kept));
        return dws_error (error, errno, "%s", errno == EAGAIN
                          ? "no agent is attached: is flux-coral2-dws running?"
                          : strerror (errno));
    }
    cmd->h = agent->ctx->h;
    cmd->request = kept;
    return 0;
}

/* The newest version shared with an agent that supports 'oldest' to 'newest'.
 * Returns -1 with errno = EPROTO if there is none.
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
    const flux_msg_t *kept = NULL;
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
        safe_log (h, LOG_INFO, "a newer agent replaces the one attached");
    detach_agent (agent, ESTALE, "replaced by a newer agent");
    if (!(kept = requests_keep (ctx->requests, msg, 1, &error))
        || !(config = dws_config_agent (ctx->config)))
        goto error;
    if (flux_respond_pack (h, msg, "{s:s s:i s:[s s] s:s s:s s:o}",
                           "op", "hello",
                           "version", version,
                           "parts", "servers", "workflows",
                           "release", DWS_RELEASE,
                           "instance", ctx->instance,
                           "config", config) < 0) {
        safe_log_error (h, DWS_TOPIC_AGENT);
        flux_msg_decref (kept);
        return;
    }
    agent->request = kept;
    outbox_open (agent->outbox, kept, batches);
    agent->release = release ? strdup (release) : NULL;
    agent->reachable = true;
    free (agent->trouble);
    agent->trouble = NULL;
    return;
error:
    requests_refuse (h, msg, errno, error.text);
    flux_msg_decref (kept);
}

void agent_reconfigure (struct agent *agent)
{
    detach_agent (agent, EAGAIN, "the configuration has changed");
}

void agent_disconnect (struct agent *agent, const flux_msg_t *msg)
{
    if (agent->request && flux_disconnect_match (msg, agent->request)) {
        safe_log (agent->ctx->h, LOG_INFO, "the agent is gone");
        detach_agent (agent, 0, NULL);
    }
}

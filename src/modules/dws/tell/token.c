/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See token.h.
 *
 * All shells of a job ask at about the same time: one query to the agent
 * answers all requests for this job's token. A request is answered once it is
 * known whether its sender may have the token, which may be some time after a
 * restart of this module or of the agent; the shell decides how long it waits.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "facts/jobs.h"
#include "facts/sync.h"
#include "tell/token.h"

struct request {
    const flux_msg_t *msg;
    uint64_t jobid;
    bool asked;                 // a query for this job is under way
    struct request *next;
};

struct tokens {
    struct dws_ctx *ctx;
    struct request *head;
};

static void request_destroy (struct request *req)
{
    flux_msg_decref (req->msg);
    free (req);
}

static void refuse_token (struct tokens *tokens, const flux_msg_t *msg,
                          int errnum, const char *text)
{
    if (flux_respond_error (tokens->ctx->h, msg, errnum, text) < 0)
        flux_log_error (tokens->ctx->h, DWS_TOPIC_TOKEN);
}

/* The instance owner has no business with a user's token either. A job of
 * somebody else is refused in the same way as one that is not there.
 */
static int check_owner (const struct job *job, const flux_msg_t *msg,
                        dws_error_t *error)
{
    uint32_t userid;

    if (flux_msg_get_userid (msg, &userid) < 0)
        return dws_error (error, errno, "no credentials");
    if (!job || !job->facts->directives || job->facts->userid != userid)
        return dws_error (error, EPERM, "this is for the owner of an active "
                          "rabbit job");
    return 0;
}

static int check_token (const struct job *job, dws_error_t *error)
{
    if (job->facts->phase != DWS_PHASE_PROLOG
        && job->facts->phase != DWS_PHASE_RUNNING)
        return dws_error (error, EAGAIN, "the job is not running");
    if (!job->wf || !job->wf->token)
        return dws_error (error, ENOENT, "the job's workflow has no token");
    return 0;
}

/* Answer all requests that wait for a job's token. 'token' is NULL if it could
 * not be read.
 */
static void answer_waiting (struct tokens *tokens, uint64_t jobid,
                            const char *token, int errnum, const char *text)
{
    struct request **pp = &tokens->head;
    flux_t *h = tokens->ctx->h;

    while (*pp) {
        struct request *req = *pp;

        if (req->jobid != jobid) {
            pp = &req->next;
            continue;
        }
        *pp = req->next;
        if (!token)
            refuse_token (tokens, req->msg, errnum, text);
        else if (flux_respond_pack (h, req->msg, "{s:s}", "token", token) < 0)
            flux_log_error (h, DWS_TOPIC_TOKEN);
        request_destroy (req);
    }
}

static int errno_of (int http_status)
{
    if (http_status == 403)
        return EPERM;
    return http_status == 404 ? ENOENT : EIO;
}

static void token_result_cb (struct dws_ctx *ctx, struct job *job,
                             const struct command *cmd, json_t *report)
{
    const char *token = NULL;
    const char *message = "the token's Secret is malformed";
    char label[JOB_LABEL_SIZE];
    int status = 0;

    (void)json_unpack (report, "{s?s s?i s?s}", "value", &token,
                       "status", &status, "message", &message);
    if (!token && job)
        flux_log (ctx->h, LOG_ERR, "%s: token: %s", job_label (job, label),
                  message);
    answer_waiting (ctx->tokens, cmd->jobid, token, errno_of (status), message);
}

static bool is_asked (struct tokens *tokens, uint64_t jobid)
{
    for (struct request *req = tokens->head; req; req = req->next) {
        if (req->jobid == jobid && req->asked)
            return true;
    }
    return false;
}

/* A workflow's status may name any Secret: the agent reads it if it belongs to
 * this very workflow.
 */
static int ask_token (struct tokens *tokens, struct job *job)
{
    struct dws_workflow *wf = job->wf;
    json_t *command;

    if (!(command = json_pack ("{s:s s:s s:s s:s s:s s:{s:s s:s s:s}}",
                               "op", "secret",
                               "kind", "secrets",
                               "namespace", wf->token_namespace,
                               "name", wf->token,
                               "key", "token",
                               "workflow",
                                 "name", wf->name,
                                 "namespace", wf->namespace,
                                 "uid", wf->uid)))
        errno = ENOMEM;
    return agent_query (tokens->ctx->agent, job, token_result_cb, command);
}

/* Bring a request one step forward. Returns false if it was refused.
 */
static bool advance_request (struct tokens *tokens, struct request *req)
{
    struct dws_ctx *ctx = tokens->ctx;
    struct job *job = jobs_find (ctx->jobs, req->jobid);
    dws_error_t error;

    if (req->asked || !sync_done (ctx->sync))
        return true;
    if (check_owner (job, req->msg, &error) < 0)
        goto refuse;
    if (!agent_ready (ctx->agent))
        return true;
    if (check_token (job, &error) < 0)
        goto refuse;
    if (is_asked (tokens, req->jobid)) {
        req->asked = true;
        return true;
    }
    if (ask_token (tokens, job) < 0) {
        refuse_token (tokens, req->msg, errno, "the agent can not be asked");
        return false;
    }
    req->asked = true;
    return true;
refuse:
    refuse_token (tokens, req->msg, errno, error.text);
    return false;
}

void tokens_retry (struct tokens *tokens)
{
    struct request **pp = &tokens->head;

    while (*pp) {
        struct request *req = *pp;

        if (advance_request (tokens, req)) {
            pp = &req->next;
            continue;
        }
        *pp = req->next;
        request_destroy (req);
    }
}

void tokens_agent_lost (struct tokens *tokens)
{
    for (struct request *req = tokens->head; req; req = req->next)
        req->asked = false;
}

void tokens_disconnect (struct tokens *tokens, const flux_msg_t *msg)
{
    struct request **pp = &tokens->head;

    while (*pp) {
        struct request *req = *pp;

        if (!flux_disconnect_match (msg, req->msg)) {
            pp = &req->next;
            continue;
        }
        *pp = req->next;
        request_destroy (req);
    }
}

void token_cb (flux_t *h, flux_msg_handler_t *mh,
               const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    struct tokens *tokens = ctx->tokens;
    struct request *req;
    json_int_t id;

    if (flux_request_unpack (msg, NULL, "{s:I}", "jobid", &id) < 0) {
        refuse_token (tokens, msg, errno, NULL);
        return;
    }
    if (!(req = calloc (1, sizeof (*req)))) {
        refuse_token (tokens, msg, ENOMEM, NULL);
        return;
    }
    req->msg = flux_msg_incref (msg);
    req->jobid = id;
    if (!advance_request (tokens, req)) {
        request_destroy (req);
        return;
    }
    req->next = tokens->head;
    tokens->head = req;
}

struct tokens *tokens_create (struct dws_ctx *ctx)
{
    struct tokens *tokens;

    if ((tokens = calloc (1, sizeof (*tokens))))
        tokens->ctx = ctx;
    return tokens;
}

void tokens_destroy (struct tokens *tokens)
{
    if (tokens) {
        ERRNO_SAFE_BLOCK;
        while (tokens->head) {
            struct request *req = tokens->head;

            tokens->head = req->next;
            refuse_token (tokens, req->msg, ENOSYS,
                          "the dws module is unloaded");
            request_destroy (req);
        }
        free (tokens);
    }
}

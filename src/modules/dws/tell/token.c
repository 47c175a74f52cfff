/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See token.h.
 *
 * The shells of a job ask at about the same time, so one query to the agent answers all
 * requests for this job's token. After a restart of this module or the agent a request
 * may wait until the job's owner is known; the shell decides how long it waits.
 *
 * Any user may ask about any job id before the jobs are known, so requests are bounded.
 * They are counted apart from the user's other requests, which the shells of his jobs
 * must not crowd out.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libutil/idmap.h"
#include "libutil/safelog.h"
#include "agent/agent.h"
#include "base/requests.h"
#include "facts/config.h"
#include "facts/jobs.h"
#include "facts/sync.h"
#include "tell/token.h"

/* Bounds on requests of one user, whose jobs run at most two shells for each node at
 * one time. The minimum suffices for tests on small machines.
 */
#define REQUESTS_PER_NODE 2
#define REQUESTS_MIN 1024

/* The pending requests about one job.
 */
struct waiting {
    uint64_t jobid;
    bool asked;                 // a query for this job is under way
    struct flux_msglist *list;
};

struct tokens {
    struct dws_ctx *ctx;
    struct idmap *jobs;         // job id -> struct waiting
    struct idmap *requests;     // those in all lists
};

static void waiting_destroy (void *value)
{
    struct waiting *w = value;

    flux_msglist_destroy (w->list);
    free (w);
}

static bool is_over (const struct waiting *w)
{
    return flux_msglist_count (w->list) == 0 && !w->asked;
}

/* The upper bound on pending requests of a user.
 */
static size_t most_requests (struct tokens *tokens)
{
    size_t hosts = dws_topology_host_count (tokens->ctx->config->topology);
    size_t max = hosts * REQUESTS_PER_NODE;

    return max < REQUESTS_MIN ? REQUESTS_MIN : max;
}

/* Answers
 */

/* The token is for the job's owner only, not for the instance owner. A job of
 * another user gets the same error as one that does not exist.
 */
static int check_owner (const struct job *job, uint32_t userid,
                        dws_error_t *error)
{
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

/* Answer all requests about a job. 'token' is NULL if it could not be read.
 */
static void answer_waiting (struct tokens *tokens, struct waiting *w,
                            const char *token, int errnum, const char *text)
{
    flux_t *h = tokens->ctx->h;
    const flux_msg_t *msg;

    while ((msg = flux_msglist_pop (w->list))) {
        if (!token)
            requests_refuse (h, msg, errnum, text);
        else
            requests_answer (h, msg, json_pack ("{s:s}", "token", token), NULL);
        flux_msg_decref (msg);
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
    struct waiting *w = idmap_find (ctx->tokens->jobs, cmd->jobid);
    const char *token = NULL;
    const char *message = "the token's Secret is malformed";
    char label[JOB_LABEL_SIZE];
    int status = 0;

    (void)json_unpack (report, "{s?s s?i s?s}", "value", &token,
                       "status", &status, "message", &message);
    if (!token && job)
        safe_log (ctx->h, LOG_ERR, "%s: token: %s", job_label (job, label),
                  message);
    if (w) {
        answer_waiting (ctx->tokens, w, token, errno_of (status), message);
        idmap_delete (ctx->tokens->jobs, cmd->jobid);
    }
}

/* A workflow's status may name any Secret, so the agent reads it only if it
 * belongs to this workflow.
 */
static int ask_token (struct tokens *tokens, struct job *job)
{
    struct dws_workflow *wf = job->wf;

    return agent_query (tokens->ctx->agent, job, token_result_cb,
                        json_pack ("{s:s s:s s:s s:s s:s s:{s:s s:s s:s}}",
                                   "op", "secret",
                                   "kind", "secrets",
                                   "namespace", wf->token_namespace,
                                   "name", wf->token,
                                   "key", "token",
                                   "workflow",
                                     "name", wf->name,
                                     "namespace", wf->namespace,
                                     "uid", wf->uid));
}

/* Refuse requests about another user's job.
 */
static void refuse_others (struct tokens *tokens, struct waiting *w,
                           const struct job *job)
{
    const flux_msg_t *msg;
    dws_error_t error = { "" };
    uint32_t userid;

    for (msg = flux_msglist_first (w->list); msg; msg = flux_msglist_next (w->list)) {
        if (flux_msg_get_userid (msg, &userid) < 0
            || check_owner (job, userid, &error) < 0) {
            requests_refuse (tokens->ctx->h, msg, errno, error.text);
            flux_msglist_delete (w->list);
        }
    }
}

/* Advance the requests about a job. Destroys 'w' if none is left.
 */
static void advance_waiting (struct tokens *tokens, struct waiting *w)
{
    struct dws_ctx *ctx = tokens->ctx;
    struct job *job = jobs_find (ctx->jobs, w->jobid);
    dws_error_t error;

    if (!sync_done (ctx->sync))
        return;
    refuse_others (tokens, w, job);
    if (flux_msglist_count (w->list) > 0 && agent_ready (ctx->agent) && !w->asked) {
        if (check_token (job, &error) < 0)
            answer_waiting (tokens, w, NULL, errno, error.text);
        else if (ask_token (tokens, job) < 0)
            answer_waiting (tokens, w, NULL, errno,
                            "the agent can not be asked");
        else
            w->asked = true;
    }
    if (is_over (w))
        idmap_delete (tokens->jobs, w->jobid);
}

/* Those after job '*id', which becomes theirs: they may be destroyed meanwhile.
 */
static struct waiting *next_waiting (const struct tokens *tokens, uint64_t *id)
{
    struct waiting *w = idmap_next (tokens->jobs, *id);

    if (w)
        *id = w->jobid;
    return w;
}

void tokens_retry (struct tokens *tokens)
{
    struct waiting *w;
    uint64_t id = 0;

    while ((w = next_waiting (tokens, &id)))
        advance_waiting (tokens, w);
}

void tokens_agent_lost (struct tokens *tokens)
{
    struct waiting *w;
    uint64_t id = 0;

    while ((w = next_waiting (tokens, &id))) {
        w->asked = false;
        if (is_over (w))
            idmap_delete (tokens->jobs, id);
    }
}

void tokens_disconnect (struct tokens *tokens, const flux_msg_t *msg)
{
    struct waiting *w;
    uint64_t id = 0;

    while ((w = next_waiting (tokens, &id))) {
        (void)flux_msglist_disconnect (w->list, msg);
        if (is_over (w))
            idmap_delete (tokens->jobs, id);
    }
}

/* The requests about a job, in a new record if there are none.
 */
static struct waiting *find_waiting (struct tokens *tokens, uint64_t jobid)
{
    struct waiting *w = idmap_find (tokens->jobs, jobid);

    if (!w && (w = calloc (1, sizeof (*w)))) {
        w->jobid = jobid;
        if (!(w->list = flux_msglist_create ())
            || idmap_insert (tokens->jobs, jobid, w) < 0) {
            ERRNO_SAFE (waiting_destroy (w));
            return NULL;
        }
    }
    return w;
}

static struct waiting *add_request (struct tokens *tokens, uint64_t jobid,
                                    const flux_msg_t *msg, dws_error_t *error)
{
    const flux_msg_t *kept;
    struct waiting *w;

    if (!(kept = requests_keep (tokens->requests, msg, most_requests (tokens),
                                error)))
        return NULL;
    if (!(w = find_waiting (tokens, jobid))
        || flux_msglist_append (w->list, kept) < 0) {
        dws_error_nomem (error);
        w = NULL;
    }
    ERRNO_SAFE (flux_msg_decref (kept));
    return w;
}

void token_cb (flux_t *h, flux_msg_handler_t *mh,
               const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    struct tokens *tokens = ctx->tokens;
    dws_error_t error = { "" };
    struct waiting *w;
    json_int_t id;

    if (flux_request_unpack (msg, NULL, "{s:I}", "jobid", &id) < 0) {
        requests_refuse (h, msg, errno, NULL);
        return;
    }
    if (!(w = add_request (tokens, id, msg, &error))) {
        requests_refuse (h, msg, errno, error.text);
        return;
    }
    advance_waiting (tokens, w);
}

struct tokens *tokens_create (struct dws_ctx *ctx)
{
    struct tokens *tokens;

    if (!(tokens = calloc (1, sizeof (*tokens))))
        return NULL;
    tokens->ctx = ctx;
    if (!(tokens->jobs = idmap_create (waiting_destroy))
        || !(tokens->requests = idmap_create (free))) {
        tokens_destroy (tokens);
        return NULL;
    }
    return tokens;
}

void tokens_destroy (struct tokens *tokens)
{
    struct waiting *w;
    uint64_t id = 0;

    if (tokens) {
        ERRNO_SAFE_BLOCK;
        while (tokens->jobs && (w = next_waiting (tokens, &id)))
            answer_waiting (tokens, w, NULL, ENOSYS,
                            "the dws module is unloaded");
        idmap_destroy (tokens->jobs);
        idmap_destroy (tokens->requests);
        free (tokens);
    }
}

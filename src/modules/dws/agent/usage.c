/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See usage.h.
 */

#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/commands.h"
#include "agent/usage.h"
#include "facts/jobs.h"
#include "facts/space.h"

/* A workflow that has left Proposal has its storage.
 */
static bool holds_unknown (const struct job *job)
{
    return job->wf && job->wf->desired > DWS_STATE_PROPOSAL
        && !job->claim.bytes;
}

static void find_unknown (struct job *job, void *arg)
{
    bool *found = arg;

    if (holds_unknown (job))
        *found = true;
}

/* A job has one Servers object for each directive with storage.
 */
static int learn_servers (struct dws_ctx *ctx, json_t *servers)
{
    const char *name = NULL;
    json_t *spec = NULL;
    json_t *layout;
    struct job *job;
    int rc;

    if (json_unpack (servers, "{s:{s:{s:s}} s:o}",
                     "metadata", "labels", WORKFLOW_LABEL ".name", &name,
                     "spec", &spec) < 0
        || !(job = jobs_find (ctx->jobs, dws_workflow_jobid (name)))
        || !job->wf || strcmp (job->wf->name, name) != 0)
        return 0;
    if (!(layout = json_pack ("[O]", spec)))
        return -1;
    rc = space_claim (ctx->space, &job->claim, layout);
    json_decref (layout);
    return rc;
}

static void servers_listed_cb (struct dws_ctx *ctx, struct job *none,
                    const struct command *cmd, json_t *report)
{
    json_t *objects = json_object_get (report, "objects");
    const char *message = "";
    json_t *servers;
    size_t index;

    space_set_known (ctx->space);
    if (!objects) {
        (void)json_unpack (report, "{s:s}", "message", &message);
        flux_log (ctx->h, LOG_ERR, "space in use: %s", message);
    }
    json_array_foreach (objects, index, servers) {
        if (learn_servers (ctx, servers) < 0) {
            flux_log (ctx->h, LOG_ERR, "space in use: out of memory");
            break;
        }
    }
    ctx->events->space_known (ctx);
}

void usage_start (struct dws_ctx *ctx)
{
    bool found = false;

    if (space_known (ctx->space))
        return;
    jobs_each (ctx->jobs, find_unknown, &found);
    if (!found) {
        space_set_known (ctx->space);
        ctx->events->space_known (ctx);
        return;
    }
    if (agent_query (ctx->agent, NULL, servers_listed_cb,
                     json_pack ("{s:s s:s s:s s:[s,s]}",
                                "op", "list",
                                "kind", "servers",
                                "selector", WORKFLOW_LABEL ".name",
                                "fields",
                                  "metadata.labels",
                                  "spec.allocationSets")) < 0)
        flux_log_error (ctx->h, "space in use");
}

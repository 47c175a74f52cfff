/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See usage.h.
 */

#include <errno.h>
#include <string.h>

#include "libdws/directive/command.h"
#include "libutil/safelog.h"
#include "agent/usage.h"
#include "facts/jobs.h"
#include "facts/space.h"

/* Does the job, which has not ended yet, create this persistent storage?
 */
static bool creates (const struct job *job, const char *name)
{
    const struct dws_directives *directives = job->facts->directives;

    if (job->facts->phase >= DWS_PHASE_GONE || !job->wf)
        return false;
    for (size_t i = 0; i < dws_directives_count (directives); i++) {
        const char *made = dws_command_persistent (directives, i);

        if (made && dws_command (directives, i) == DWS_COMMAND_CREATE_PERSISTENT
            && !strcmp (made, name))
            return true;
    }
    return false;
}

struct search {
    const char *name;
    struct job *job;
};

static void find_creator (struct job *job, void *arg)
{
    struct search *search = arg;

    if (!search->job && creates (job, search->name))
        search->job = job;
}

static enum space_owner find_owner (void *arg, const char *workflow,
                                    const char *persistent,
                                    struct claim **claim)
{
    struct dws_ctx *ctx = arg;
    struct search search = { .name = persistent };

    if (persistent)
        jobs_each (ctx->jobs, find_creator, &search);
    else if (workflow) {
        search.job = jobs_find (ctx->jobs, dws_workflow_jobid (workflow));
        if (search.job && (!search.job->wf
                           || strcmp (search.job->wf->name, workflow) != 0))
            search.job = NULL;
    }
    if (!search.job)
        return SPACE_OF_NOBODY;
    if (job_torn_down (search.job))
        return persistent ? SPACE_OF_NOBODY : SPACE_FREE;
    *claim = &search.job->claim;
    return SPACE_OF_JOB;
}

static void settle (struct dws_ctx *ctx, bool again)
{
    space_settle (ctx->space, again, find_owner, ctx);
    if (space_known (ctx->space))
        ctx->events->space_changed (ctx);
}

void usage_known (struct dws_ctx *ctx)
{
    bool known = space_known (ctx->space);

    space_set_known (ctx->space);
    settle (ctx, true);
    if (!known)
        ctx->events->space_known (ctx);
}

void usage_list (struct dws_ctx *ctx, json_t *objects, bool *listing, bool more)
{
    bool begun = *listing;

    *listing = more && json_is_array (objects);
    if (!begun && !json_is_array (objects))
        return;
    if (space_list (ctx->space, objects, !begun, !*listing) < 0)
        safe_log_error (ctx->h, "servers");
    if (!*listing)
        settle (ctx, false);
}

void usage_learn (struct dws_ctx *ctx, json_t *servers, bool deleted)
{
    if (space_learn (ctx->space, servers, deleted) < 0)
        safe_log_error (ctx->h, "servers");
    settle (ctx, false);
}

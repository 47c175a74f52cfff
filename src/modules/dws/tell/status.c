/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See status.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/jsonmake.h"
#include "libutil/names.h"
#include "agent/agent.h"
#include "base/requests.h"
#include "facts/config.h"
#include "facts/leases.h"
#include "facts/persistent.h"
#include "facts/sync.h"
#include "health/health.h"
#include "tell/list.h"
#include "tell/losses.h"
#include "tell/notices.h"
#include "tell/status.h"

/* Upper bound on jobs in one answer.
 */
#define LIST_MAX 200

/* Counts over the jobs that a guest may see.
 */
struct seen {
    const struct asker *asker;
    struct counts counts;
    struct job *oldest;         // whose workflow is late for longest
};

static void see_job (struct job *job, void *arg)
{
    struct seen *seen = arg;
    const struct counted *c = &job->counted;

    if (!is_visible (job, seen->asker))
        return;
    counts_add (&seen->counts, c, 1);
    if (c->late
        && (!seen->oldest || c->since < seen->oldest->counted.since))
        seen->oldest = job;
}

static json_t *describe_all (struct dws_ctx *ctx, const struct asker *asker)
{
    const struct tally *tally = jobs_tally (ctx->jobs);
    struct seen seen = { .asker = asker };
    json_int_t owner = asker->owner ? -1 : (json_int_t)asker->userid;
    json_t *phases = json_object ();
    json_t *states = json_object ();
    json_t *o;

    if (asker->owner) {
        seen.counts = tally->counts;
        seen.oldest = tally_oldest (tally);
    }
    else
        jobs_each (ctx->jobs, see_job, &seen);
    for (int i = 0; i <= DWS_PHASE_GONE; i++)
        json_object_set_new (phases, dws_phase_name (i),
                             json_integer (seen.counts.phases[i]));
    for (int i = DWS_STATE_PROPOSAL; i <= DWS_STATE_TEARDOWN; i++)
        json_object_set_new (states, dws_state_name (i),
                             json_integer (seen.counts.states[i]));
    o = json_pack ("{s:s s:{s:s s:s? s:s?} s:b s:b s:i s:i s:i s:i"
                   " s:o s:o s:o s:o s:o s:o s:o s:o s:o}",
                   "instance", ctx->instance,
                   "releases",
                     "module", DWS_RELEASE,
                     "plugin", sync_release (ctx->sync),
                     "agent", agent_release (ctx->agent),
                   "synced", sync_done (ctx->sync),
                   "plugin", sync_alive (ctx->sync),
                   "jobs", seen.counts.jobs,
                   "workflows", seen.counts.workflows,
                   "unmade", seen.counts.unmade,
                   "remade", tally->remade,
                   "phases", phases,
                   "states", states,
                   "agent", agent_status (ctx->agent, asker->owner),
                   "rabbits", list_totals (ctx),
                   "persistent", leases_describe (ctx,
                     persistent_status (ctx->persistent, ctx->space, owner)),
                   "expiry", leases_status (ctx->leases),
                   "losses", losses_status (ctx->losses),
                   "notices", notices_status (ctx->notices),
                   "health", health_status (ctx->health));
    if (seen.oldest)
        dws_json_set (&o, "oldest", describe_job (seen.oldest));
    return o;
}

/* A guest gets the same error for a job of another user as for one that does not exist.
 * Root and the instance owner do not: the prolog must recognize a job without
 * directives even if root may not read jobspecs. Until all jobs are known the error is
 * EAGAIN.
 */
static json_t *one_job (struct dws_ctx *ctx, const struct asker *asker,
                        uint64_t id)
{
    struct job *job = jobs_find (ctx->jobs, id);
    bool sees_all = asker->owner || asker->userid == 0;

    if (!job || !is_visible (job, asker)) {
        if (!sync_done (ctx->sync))
            errno = EAGAIN;
        else
            errno = !job && sees_all ? ENOENT : EPERM;
        return NULL;
    }
    job->ctx->events->job_asked (job);
    return describe_job_fully (job);
}

static json_t *answer_status (struct dws_ctx *ctx, const flux_msg_t *msg)
{
    struct asker asker;
    json_int_t id = 0;
    json_int_t after = 0;
    int max = LIST_MAX;
    const char *list = NULL;
    const char *payload;

    /* No payload at all is the same as an empty one. */
    if (asker_of (msg, &asker) < 0
        || flux_request_decode (msg, NULL, &payload) < 0
        || (payload && flux_request_unpack (msg, NULL, "{s?I s?s s?I s?i}",
                                            "jobid", &id,
                                            "list", &list,
                                            "after", &after,
                                            "max", &max) < 0))
        return NULL;
    errno = ENOMEM;
    if (id != 0)
        return one_job (ctx, &asker, id);
    if (!list)
        return describe_all (ctx, &asker);
    if (!strcmp (list, "rabbits"))
        return list_rabbits (ctx, &asker);
    if (!strcmp (list, "jobs"))
        return list_jobs (ctx, &asker, after, max < LIST_MAX ? max : LIST_MAX);
    errno = EINVAL;
    return NULL;
}

void status_cb (flux_t *h, flux_msg_handler_t *mh,
                const flux_msg_t *msg, void *arg)
{
    requests_answer (h, msg, answer_status (arg, msg), NULL);
}

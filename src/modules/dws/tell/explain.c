/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See explain.h.
 */

#include <stdlib.h>

#include "libdws/facts/mounts.h"
#include "libdws/facts/progress.h"
#include "libdws/facts/servers.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "base/timeline.h"
#include "facts/config.h"
#include "tell/explain.h"

/* Report the failure to the user after this time (s), with or without details.
 */
#define PATIENCE 5.

struct explanation {
    enum dws_state state;       // the details are about this state
    double asked;
    bool answered;
    char *hosts;
    struct dws_progress progress;
};

static void explanation_destroy (struct job *job, void *data)
{
    struct explanation *e = data;

    free (e->hosts);
    free (e);
}

static void learn_details (struct job *job, struct explanation *e,
                           json_t *objects)
{
    switch (e->state) {
        case DWS_STATE_SETUP:
            e->hosts = dws_servers_unready (objects, NULL);
            break;
        case DWS_STATE_PRERUN:
            e->hosts = dws_mounts_missing (objects, job->facts, job->wf,
                                           job->ctx->config->topology, NULL);
            break;
        case DWS_STATE_POSTRUN:
            e->hosts = dws_mounts_lagging (objects, "unmounted", NULL);
            break;
        default:
            dws_progress_movements (objects, e->state, &e->progress);
            break;
    }
}

static void explain_answer_cb (struct dws_ctx *ctx, struct job *job,
                               const struct command *cmd, json_t *report)
{
    struct explanation *e = job ? job_slot (job, SLOT_EXPLAIN) : NULL;

    if (!e || e->answered || !job->wf
        || cmd->generation != job->generation)
        return;
    learn_details (job, e, json_object_get (report, "objects"));
    e->answered = true;
    jobs_changed (job);
}

static bool ask_details (struct job *job, const char *kind)
{
    struct explanation *e;

    job_slot_clear (job, SLOT_EXPLAIN);
    if (!(e = job_slot_make (job, SLOT_EXPLAIN, sizeof (*e),
                             explanation_destroy)))
        return false;
    e->state = job->wf->state;
    e->asked = monotonic_now ();
    if (agent_query (job->ctx->agent, job, explain_answer_cb,
                     command_list (job->wf, kind)) < 0) {
        e->answered = true;
        return false;
    }
    jobs_wake (job, PATIENCE);
    return true;
}

bool explain_ready (struct job *job)
{
    const char *kind = dws_explain_kind (job->wf);
    struct explanation *e = job_slot (job, SLOT_EXPLAIN);

    if (!kind || agent_link (job->ctx->agent) != DWS_LINK_UP)
        return true;
    if (!e || e->state != job->wf->state)
        return !ask_details (job, kind);
    if (e->answered || monotonic_now () >= e->asked + PATIENCE)
        return true;
    jobs_wake (job, e->asked + PATIENCE - monotonic_now ());
    return false;
}

const char *explain_text (struct job *job, const char *text,
                          char buf[DWS_EXPLAIN_SIZE])
{
    struct dws_details details = { 0 };
    const struct explanation *e = job_slot (job, SLOT_EXPLAIN);

    if (e && job->wf && e->state == job->wf->state) {
        details.hosts = e->hosts;
        details.movement = e->progress.failure;
    }
    return dws_explain (job->wf, &details, text, buf);
}

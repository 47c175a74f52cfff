/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See explain.h.
 */

#include <errno.h>
#include <stdlib.h>

#include "libdws/mounts.h"
#include "libdws/progress.h"
#include "agent.h"
#include "explain.h"
#include "objects.h"
#include "persistent.h"

/* The user is told after this many seconds, with or without details.
 */
#define PATIENCE 5.

struct explanation {
    enum dws_state state;       // what is asked for is about this
    double asked;
    bool answered;
    char *hosts;
    struct dws_progress progress;
};

void explanation_destroy (struct explanation *explanation)
{
    if (explanation) {
        int saved_errno = errno;
        free (explanation->hosts);
        free (explanation);
        errno = saved_errno;
    }
}

static void learn (struct explanation *e, json_t *objects)
{
    switch (e->state) {
        case DWS_STATE_SETUP:
            e->hosts = dws_servers_unready (objects, NULL);
            break;
        case DWS_STATE_PRERUN:
            e->hosts = dws_mounts_lagging (objects, "mounted", NULL);
            break;
        case DWS_STATE_POSTRUN:
            e->hosts = dws_mounts_lagging (objects, "unmounted", NULL);
            break;
        default:
            dws_progress_movements (objects, e->state, &e->progress);
            break;
    }
}

static void answer_cb (struct dws_ctx *ctx, struct job *job,
                       const struct command *cmd, json_t *report)
{
    struct explanation *e = job ? job->explanation : NULL;

    if (!e || e->answered || cmd->generation != job->generation)
        return;
    learn (e, json_object_get (report, "objects"));
    e->answered = true;
    jobs_changed (job);
}

static bool ask (struct job *job, const char *kind)
{
    struct explanation *e;

    explanation_destroy (job->explanation);
    if (!(job->explanation = e = calloc (1, sizeof (*e))))
        return false;
    e->state = job->wf->state;
    e->asked = flux_reactor_time ();
    if (agent_query (job->ctx->agent, job, answer_cb,
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
    struct explanation *e = job->explanation;

    if (!kind || agent_link (job->ctx->agent) != DWS_LINK_UP)
        return true;
    if (!e || e->state != job->wf->state)
        return !ask (job, kind);
    if (e->answered || flux_reactor_time () >= e->asked + PATIENCE)
        return true;
    jobs_wake (job, e->asked + PATIENCE - flux_reactor_time ());
    return false;
}

const char *explain_text (struct job *job, const char *text,
                          char buf[DWS_EXPLAIN_SIZE])
{
    struct dws_details details = { 0 };
    const struct explanation *e = job->explanation;
    char *storage = persistent_of_job (job->ctx->persistent, job);

    if (e && job->wf && e->state == job->wf->state) {
        details.hosts = e->hosts;
        details.movement = e->progress.failure;
    }
    details.storage = storage;
    dws_explain (job->wf, &details, text, buf);
    free (storage);
    return buf;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See status.h.
 */

#include <errno.h>
#include <jansson.h>

#include "agent.h"
#include "annotate.h"
#include "config.h"
#include "jobs.h"
#include "status.h"
#include "sync.h"

/* What the job waits for comes from deciding once more: it has no effect.
 */
static json_t *describe_job (struct job *job)
{
    const struct dws_workflow *wf = job->wf;
    struct dws_actions actions;
    char note[DWS_WAITING_SIZE];
    json_t *o;

    if (dws_reconcile (job->facts, wf, &job->ctx->config->policy,
                       flux_reactor_time (), &actions) < 0)
        return NULL;
    o = json_pack ("{s:I s:s s:s s:s}",
                   "id", (json_int_t)job->facts->id,
                   "phase", dws_phase_name (job->facts->phase),
                   "note", annotate_text (job, note),
                   "waiting", actions.reason);
    if (o && wf
        && json_object_set_new (o, "workflow",
                                json_pack ("{s:s s:s s:s s:b s:s}",
                                           "name", wf->name,
                                           "desired",
                                           dws_state_name (wf->desired),
                                           "state",
                                           dws_state_name (wf->state),
                                           "ready", wf->ready,
                                           "message", wf->message)) < 0) {
        json_decref (o);
        o = NULL;
    }
    return o;
}

struct tally {
    json_t *jobs;               // ids
    int workflows;
    int phases[DWS_PHASE_GONE + 1];
    int states[DWS_STATE_TEARDOWN + 1];
};

static void count_job (struct job *job, void *arg)
{
    struct tally *tally = arg;

    json_array_append_new (tally->jobs, json_integer (job->facts->id));
    tally->phases[job->facts->phase]++;
    if (job->wf) {
        tally->states[job->wf->state]++;
        tally->workflows++;
    }
}

static json_t *describe_all (struct dws_ctx *ctx)
{
    struct tally tally = { .jobs = json_array () };
    json_t *phases = json_object ();
    json_t *states = json_object ();

    jobs_each (ctx->jobs, count_job, &tally);
    for (int i = 0; i <= DWS_PHASE_GONE; i++)
        json_object_set_new (phases, dws_phase_name (i),
                             json_integer (tally.phases[i]));
    for (int i = DWS_STATE_PROPOSAL; i <= DWS_STATE_TEARDOWN; i++)
        json_object_set_new (states, dws_state_name (i),
                             json_integer (tally.states[i]));
    return json_pack ("{s:s s:b s:o s:i s:o s:o s:o}",
                      "instance", ctx->instance,
                      "synced", sync_done (ctx->sync),
                      "jobs", tally.jobs,
                      "workflows", tally.workflows,
                      "phases", phases,
                      "states", states,
                      "agent", agent_status (ctx->agent));
}

static bool allowed (const flux_msg_t *msg, struct job *job)
{
    struct flux_msg_cred cred;

    if (flux_msg_get_cred (msg, &cred) < 0)
        return false;
    if (cred.rolemask & FLUX_ROLE_OWNER)
        return true;
    return job && job->facts->directives && job->facts->userid == cred.userid;
}

void status_cb (flux_t *h, flux_msg_handler_t *mh,
                const flux_msg_t *msg, void *arg)
{
    struct dws_ctx *ctx = arg;
    json_int_t id = 0;
    struct job *job = NULL;
    json_t *o = NULL;
    const char *payload;

    /* No payload at all is the same as an empty one. */
    if (flux_request_decode (msg, NULL, &payload) < 0
        || (payload && flux_request_unpack (msg, NULL, "{s?I}",
                                            "jobid", &id) < 0))
        goto error;
    if (id != 0)
        job = jobs_find (ctx->jobs, id);
    if (!allowed (msg, job)) {
        errno = EPERM;
        goto error;
    }
    if (id != 0 && !job) {
        errno = ENOENT;
        goto error;
    }
    if (!(o = job ? describe_job (job) : describe_all (ctx))) {
        errno = ENOMEM;
        goto error;
    }
    if (flux_respond_pack (h, msg, "O", o) < 0)
        flux_log_error (h, "dws.status");
    json_decref (o);
    return;
error:
    if (flux_respond_error (h, msg, errno, NULL) < 0)
        flux_log_error (h, "dws.status");
}

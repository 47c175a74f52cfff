/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See describe.h.
 */

#include "libdws/directive/command.h"
#include "libdws/util/jsonmake.h"
#include "base/timeline.h"
#include "facts/config.h"
#include "facts/sync.h"
#include "facts/totals.h"
#include "tell/annotate.h"
#include "tell/describe.h"

int asker_of (const flux_msg_t *msg, struct asker *asker)
{
    struct flux_msg_cred cred;

    if (flux_msg_get_cred (msg, &cred) < 0)
        return -1;
    asker->owner = cred.rolemask & FLUX_ROLE_OWNER;
    asker->userid = cred.userid;
    return 0;
}

bool is_visible (const struct job *job, const struct asker *asker)
{
    /* A workflow whose job is not known has no owner. */
    return asker->owner
        || ((job->facts->directives || job->facts->released)
            && job->facts->userid == asker->userid);
}

static json_t *describe_workflow (const struct dws_workflow *wf,
                                  struct timeline *timeline)
{
    bool arrived = wf->ready && wf->state == wf->desired;
    double now = timeline_now (timeline);
    bool trouble = dws_workflow_troubled (wf, now);
    double since = arrived ? wf->t_ready : wf->t_desired;
    double age = since > 0. && since < now ? now - since : 0.;

    return json_pack ("{s:s s:s s:s s:b s:b s:s s:s s:f s:f}",
                      "name", wf->name,
                      "desired", dws_state_name (wf->desired),
                      "state", dws_state_name (wf->state),
                      "ready", wf->ready,
                      "trouble", trouble,
                      "status", dws_status_name (wf->status),
                      "message", wf->trouble && !trouble ? "" : wf->message,
                      "since", timeline_since (timeline, since),
                      "age", age);
}

/* While the plugin is away, this module does not learn that a job ends: say so.
 */
static const char *waits_for (const struct job *job, const char *reason)
{
    if (!sync_alive (job->ctx->sync)
        && job->facts->phase < DWS_PHASE_GONE && !job->facts->abandoned)
        return "dws-jobtap.so to be loaded: the job may have ended meanwhile";
    return reason;
}

/* Calls dws_reconcile() only to learn what the job waits for; the actions are
 * not carried out.
 */
json_t *describe_job (struct job *job)
{
    const struct dws_workflow *wf = job->wf;
    struct dws_actions actions;
    char note[DWS_WAITING_SIZE];
    json_t *o;

    totals_update_text (job->ctx->totals, job);
    if (dws_reconcile (job->facts, wf, &job->ctx->config->policy,
                       timeline_now (job->ctx->timeline), &actions) < 0)
        return NULL;
    o = json_pack ("{s:I s:I s:s s:s s:s s:b}",
                   "id", (json_int_t)job->facts->id,
                   "userid", (json_int_t)job->facts->userid,
                   "phase", dws_phase_name (job->facts->phase),
                   "note", annotate_text (job, note),
                   "waiting", waits_for (job, actions.reason),
                   "exception", job->facts->exception);
    if (wf)
        dws_json_set (&o, "workflow", describe_workflow (wf, job->ctx->timeline));
    if (job->claim.entries)
        dws_json_set (&o, "rabbits", json_string (space_rabbits (&job->claim)));
    return o;
}

/* Adds details that are too long for a list.
 */
json_t *describe_job_fully (struct job *job)
{
    const struct dws_workflow *wf = job->wf;
    json_t *o;

    if (!(o = describe_job (job)))
        return NULL;
    if (job->facts->phase == DWS_PHASE_PROLOG)
        dws_json_set (&o, "limited", json_boolean (job->facts->t_prolog > 0.));
    if (job->facts->directives)
        dws_json_set (&o, "directives",
                      dws_directives_encode (job->facts->directives));
    if (job->facts->commands & DWS_COMMAND_COPY_OUT)
        dws_json_set (&o, "copy_out",
                      dws_commands_copied_out (job->facts->directives));
    if (job->claim.entries)
        dws_json_set (&o, "space", dws_bytes_encode (&job->claim.bytes));
    if (wf && wf->lagging)
        dws_json_set (&o, "lagging", json_string (wf->lagging));
    if (wf && wf->failed)
        dws_json_set (&o, "failed", json_string (wf->failed));
    return o;
}

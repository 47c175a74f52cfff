/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See status.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "libdws/jsontext.h"
#include "agent.h"
#include "annotate.h"
#include "config.h"
#include "health.h"
#include "losses.h"
#include "persistent.h"
#include "status.h"
#include "sync.h"

/* So many jobs are in one answer.
 */
#define LIST_MAX 200

static int set (json_t *o, const char *key, json_t *value)
{
    return json_object_set_new (o, key, value);
}

static json_t *describe_workflow (const struct dws_workflow *wf)
{
    bool arrived = wf->ready && wf->state == wf->desired;

    return json_pack ("{s:s s:s s:s s:b s:s s:s s:f}",
                      "name", wf->name,
                      "desired", dws_state_name (wf->desired),
                      "state", dws_state_name (wf->state),
                      "ready", wf->ready,
                      "status", dws_status_name (wf->status),
                      "message", wf->message,
                      "since", arrived ? wf->t_ready : wf->t_desired);
}

static json_t *rabbits_of (const struct job *job)
{
    struct hostlist *hl;
    const char *rabbit;
    json_t *bytes;
    json_t *o = NULL;
    char *s = NULL;

    if (!(hl = hostlist_create ()))
        return NULL;
    json_object_foreach (job->space, rabbit, bytes) {
        if (hostlist_append (hl, rabbit) < 0)
            goto done;
    }
    hostlist_sort (hl);
    if ((s = hostlist_encode (hl)))
        o = json_string (s);
done:
    free (s);
    hostlist_destroy (hl);
    return o;
}

/* What the job waits for comes from deciding once more: it has no effect.
 */
json_t *status_job (struct job *job)
{
    const struct dws_workflow *wf = job->wf;
    struct dws_actions actions;
    char note[DWS_WAITING_SIZE];
    json_t *o;

    if (dws_reconcile (job->facts, wf, &job->ctx->config->policy,
                       flux_reactor_time (), &actions) < 0)
        return NULL;
    if (!(o = json_pack ("{s:I s:I s:s s:s s:s s:b}",
                         "id", (json_int_t)job->facts->id,
                         "userid", (json_int_t)job->facts->userid,
                         "phase", dws_phase_name (job->facts->phase),
                         "note", annotate_text (job, note),
                         "waiting", actions.reason,
                         "exception", job->facts->exception)))
        return NULL;
    if ((wf && set (o, "workflow", describe_workflow (wf)) < 0)
        || (job->space && set (o, "rabbits", rabbits_of (job)) < 0)) {
        json_decref (o);
        o = NULL;
    }
    return o;
}

/* Of a single job, also what is too much for a list.
 */
static json_t *describe_job (struct job *job)
{
    const struct dws_workflow *wf = job->wf;
    json_t *o;

    if (!(o = status_job (job)))
        return NULL;
    if ((job->facts->directives
         && set (o, "directives",
                 dws_jsontext_get (job->facts->directives)) < 0)
        || (job->space && json_object_set (o, "space", job->space) < 0)
        || (wf && wf->lagging
            && set (o, "lagging", json_string (wf->lagging)) < 0)
        || (wf && wf->failed
            && set (o, "failed", json_string (wf->failed)) < 0)) {
        json_decref (o);
        o = NULL;
    }
    return o;
}

/* What a guest may see of the jobs.
 */
struct seen {
    const struct asker *asker;
    struct counts counts;
    struct job *oldest;         // longest in a state that is not reached
};

static void see_job (struct job *job, void *arg)
{
    struct seen *seen = arg;
    const struct counted *c = &job->counted;

    if (!status_visible (job, seen->asker))
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
    o = json_pack ("{s:s s:b s:i s:i s:o s:o s:o s:o s:o s:o s:o}",
                   "instance", ctx->instance,
                   "synced", sync_done (ctx->sync),
                   "jobs", seen.counts.jobs,
                   "workflows", seen.counts.workflows,
                   "phases", phases,
                   "states", states,
                   "agent", agent_status (ctx->agent),
                   "rabbits", list_totals (ctx),
                   "persistent", persistent_status (ctx->persistent, owner),
                   "losses", losses_status (ctx->losses),
                   "health", health_status (ctx->health));
    if (o && seen.oldest && set (o, "oldest", status_job (seen.oldest)) < 0) {
        json_decref (o);
        o = NULL;
    }
    return o;
}

bool status_visible (const struct job *job, const struct asker *asker)
{
    /* The workflow of a job that is not known has no owner. */
    return asker->owner
        || ((job->facts->directives || job->facts->released)
            && job->facts->userid == asker->userid);
}

static int who_asks (const flux_msg_t *msg, struct asker *asker)
{
    struct flux_msg_cred cred;

    if (flux_msg_get_cred (msg, &cred) < 0)
        return -1;
    asker->owner = cred.rolemask & FLUX_ROLE_OWNER;
    asker->userid = cred.userid;
    return 0;
}

/* A job of somebody else is refused in the same way as one that is not there.
 */
static json_t *one_job (struct dws_ctx *ctx, const struct asker *asker,
                        uint64_t id)
{
    struct job *job = jobs_find (ctx->jobs, id);

    if (job ? !status_visible (job, asker) : !asker->owner) {
        errno = EPERM;
        return NULL;
    }
    if (!job) {
        errno = ENOENT;
        return NULL;
    }
    return describe_job (job);
}

static json_t *answer (struct dws_ctx *ctx, const flux_msg_t *msg)
{
    struct asker asker;
    json_int_t id = 0;
    json_int_t after = 0;
    int max = LIST_MAX;
    const char *list = NULL;
    const char *payload;

    /* No payload at all is the same as an empty one. */
    if (who_asks (msg, &asker) < 0
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
    json_t *o = answer (arg, msg);
    int rc;

    if (o)
        rc = flux_respond_pack (h, msg, "O", o);
    else
        rc = flux_respond_error (h, msg, errno, NULL);
    if (rc < 0)
        flux_log_error (h, "dws.status");
    json_decref (o);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See jobs.h.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "libutil/idmap.h"
#include "libutil/safelog.h"
#include "base/retry.h"
#include "base/timeline.h"
#include "base/timer.h"
#include "facts/config.h"
#include "facts/jobs.h"

#define BACKOFF_MIN 0.5
#define BACKOFF_MAX 60.

/* Upper bounds on reconcile calls: DECISIONS per reactor turn,
 * DECISIONS_BETWEEN after each message of a burst. Larger values delay
 * dws.status; smaller ones let a backlog grow, since one report can change a
 * dozen jobs.
 */
#define DECISIONS 32
#define DECISIONS_BETWEEN 16

/* Above this many changed jobs, reconcile some before the next message: each
 * may hold a Workflow object until it is reconciled.
 */
#define BACKLOG_MAX 64

struct jobs {
    struct dws_ctx *ctx;
    struct idmap *map;          // job id -> struct job
    struct job *head;           // changed jobs, oldest first
    struct job **tail;
    size_t backlog;             // jobs in the list
    struct tally tally;
    flux_watcher_t *kick;       // runs at the next turn of the reactor
    bool known[JOBS_SOURCES];   // jobs_all_known()
};

static void job_destroy (void *value)
{
    struct job *job = value;

    if (job) {
        ERRNO_SAFE_BLOCK;
        job->ctx->events->job_forgotten (job);
        job_slots_clear (job);
        tally_remove (&job->ctx->jobs->tally, job);
        space_free (job->ctx->space, &job->claim, false);
        dws_bytes_clear (&job->reserved);
        json_decref (job->ssds);
        free (job->object);
        flux_watcher_destroy (job->wake);
        retry_destroy (job->retry);
        free (job->retry_reason);
        dws_workflow_destroy (job->wf);
        dws_job_destroy (job->facts);
        free (job);
    }
}

const char *job_workflow (const struct job *job, char buf[DWS_NAME_SIZE])
{
    if (job->wf)
        return job->wf->name;
    return dws_workflow_name (job->facts->id,
                              job->taken ? job->ctx->instance : NULL, buf);
}

const char *job_label (const struct job *job, char buf[JOB_LABEL_SIZE])
{
    char f58[32];
    char name[DWS_NAME_SIZE];

    if (flux_job_id_encode (job->facts->id, "f58", f58, sizeof (f58)) < 0)
        snprintf (f58, sizeof (f58), "%" PRIu64, job->facts->id);
    snprintf (buf, JOB_LABEL_SIZE, "%s (%s)", f58,
              job_workflow (job, name));
    return buf;
}

size_t jobs_count (struct jobs *jobs)
{
    return idmap_count (jobs->map);
}

struct job *jobs_find (struct jobs *jobs, uint64_t id)
{
    return idmap_find (jobs->map, id);
}

struct job *jobs_next (struct jobs *jobs, uint64_t after)
{
    return idmap_next (jobs->map, after);
}

const struct tally *jobs_tally (const struct jobs *jobs)
{
    return &jobs->tally;
}

struct each {
    void (*cb)(struct job *job, void *arg);
    void *arg;
};

static void each_cb (uint64_t id, void *value, void *arg)
{
    struct each *each = arg;

    each->cb (value, each->arg);
}

void jobs_each (struct jobs *jobs, void (*cb)(struct job *job, void *arg),
                void *arg)
{
    struct each each = { cb, arg };

    idmap_each (jobs->map, each_cb, &each);
}

/* Deciding
 */

static bool facts_complete (const struct jobs *jobs)
{
    return jobs->known[JOBS_OF_FLUX] && jobs->known[JOBS_OF_KUBERNETES];
}

void jobs_changed (struct job *job)
{
    struct jobs *jobs = job->ctx->jobs;

    tally_update (&jobs->tally, job);
    job->ctx->events->job_changed (job);
    if (job->changed || !facts_complete (jobs))
        return;
    job->changed = true;
    job->next = NULL;
    *jobs->tail = job;
    jobs->tail = &job->next;
    jobs->backlog++;
    timer_start (jobs->kick, 0.);   // an idle watcher would wait for messages
}

static void job_changed_cb (struct job *job, void *arg)
{
    jobs_changed (job);
}

void jobs_changed_all (struct jobs *jobs)
{
    jobs_each (jobs, job_changed_cb, NULL);
}

void jobs_all_known (struct jobs *jobs, enum jobs_source source)
{
    jobs->known[source] = true;
    jobs_changed_all (jobs);
}

static struct job *pop_changed (struct jobs *jobs)
{
    struct job *job = jobs->head;

    if (job) {
        if (!(jobs->head = job->next))
            jobs->tail = &jobs->head;
        jobs->backlog--;
        job->changed = false;
    }
    return job;
}

static void job_wake_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                         void *arg)
{
    jobs_changed (arg);
}

/* Without memory for the timer the job waits for the next change.
 */
void jobs_wake (struct job *job, double after)
{
    if (!job->wake
        && !(job->wake = timer_make (job->ctx->h, job_wake_cb, job)))
        safe_log_error (job->ctx->h, "timer");
    else
        timer_start (job->wake, after);
}

static bool is_over (struct job *job)
{
    return !job->wf && job->facts->absent
        && (job->facts->phase == DWS_PHASE_GONE || job->facts->abandoned)
        && !underway_any (&job->underway);
}

/* Forget a workflow that flux-coral2 made for an earlier job with this id. Its
 * data does not belong to this job, so no loss is recorded.
 */
static void drop_stray (struct job *job)
{
    dws_workflow_destroy (job->wf);
    job->wf = NULL;
    job->facts->absent = true;
    job->version = 0;
    free (job->object);
    job->object = NULL;
    tally_update (&job->ctx->jobs->tally, job);
    job->ctx->events->job_changed (job);
}

static void decide_job (struct jobs *jobs, struct job *job)
{
    struct dws_actions actions;
    double now = timeline_now (jobs->ctx->timeline);

    if (job->wf && job->wf->stray && !dws_adopt_fits (job->facts, job->wf))
        drop_stray (job);
    if (is_over (job)) {
        idmap_delete (jobs->map, job->facts->id);
        return;
    }
    if (dws_reconcile (job->facts, job->wf, &jobs->ctx->config->policy,
                       now, &actions) < 0) {
        safe_log_error (jobs->ctx->h, "reconcile");
        return;
    }
    if (actions.wake > 0.)
        jobs_wake (job, actions.wake > now ? actions.wake - now : 0.);
    else if (job->wake)
        flux_watcher_stop (job->wake);
    jobs->ctx->events->decided (job, &actions);
    free (job->object);
    job->object = NULL;
}

static void decide_some (struct jobs *jobs, int count)
{
    struct job *job;
    bool complete = facts_complete (jobs);

    while (count-- > 0 && (job = pop_changed (jobs))) {
        if (complete)
            decide_job (jobs, job);
    }
}

static void jobs_kick_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                          void *arg)
{
    struct jobs *jobs = arg;

    decide_some (jobs, DECISIONS);
    if (jobs->head)
        timer_start (jobs->kick, 0.);
}

void jobs_keep_up (struct jobs *jobs)
{
    if (jobs->backlog > BACKLOG_MAX)
        decide_some (jobs, DECISIONS_BETWEEN);
}

/* Learning
 */

static struct job *job_add (struct jobs *jobs, struct dws_job *facts)
{
    struct job *job;

    if (!(job = calloc (1, sizeof (*job))))
        return NULL;
    job->ctx = jobs->ctx;
    if (idmap_insert (jobs->map, facts->id, job) < 0) {
        free (job);
        return NULL;
    }
    job->facts = facts;
    job->claim.id = facts->id;
    return job;
}

struct job *jobs_learn (struct jobs *jobs, struct dws_job *facts)
{
    struct timeline *timeline = jobs->ctx->timeline;
    struct job *job;

    facts->t_prolog = timeline_of (timeline, facts->t_prolog);
    facts->t_epilog = timeline_of (timeline, facts->t_epilog);
    if (!(job = jobs_find (jobs, facts->id))) {
        if (!(job = job_add (jobs, facts))) {
            dws_job_destroy (facts);
            errno = ENOMEM;
            return NULL;
        }
    }
    else {
        /* A workflow may be seen before its job: gone is then not final. */
        if (job->facts->phase == DWS_PHASE_GONE && !job->facts->directives)
            job->facts->phase = facts->phase;
        dws_job_update (job->facts, facts);
        dws_job_destroy (facts);
    }
    jobs_changed (job);
    return job;
}

static struct job *add_orphan (struct jobs *jobs, uint64_t id)
{
    struct dws_job *facts;
    struct job *job;

    if (!(facts = calloc (1, sizeof (*facts))))
        return NULL;
    facts->id = id;
    facts->phase = DWS_PHASE_GONE;
    facts->t_gone = timeline_now (jobs->ctx->timeline);
    if (!(job = job_add (jobs, facts)))
        dws_job_destroy (facts);
    return job;
}

void jobs_look_for (struct jobs *jobs, uint64_t id)
{
    struct job *job;

    if (jobs_find (jobs, id))
        return;
    if (!(job = add_orphan (jobs, id)))
        safe_log_error (jobs->ctx->h, "looking for a workflow");
    else
        jobs_changed (job);
}

/* Call space_changed before workflow_gone, so that parts count storage that
 * stays as nobody's before they drop the job's claim.
 */
static void free_space (struct job *job, bool torn_down)
{
    if (job->claim.entries) {
        space_free (job->ctx->space, &job->claim, torn_down);
        job->ctx->events->space_changed (job->ctx);
    }
}

void jobs_doubt_workflow (struct job *job)
{
    if (job->wf) {
        job->wf->doubted = true;
        jobs_changed (job);
    }
}

/* Count an outdated workflow of a job that goes on, which gets a new one.
 */
static void note_outdated (struct job *job)
{
    char label[JOB_LABEL_SIZE];

    if (!job->wf->outdated || job->facts->remade || job->facts->exception
        || job->facts->phase > DWS_PHASE_PROLOG)
        return;
    job->facts->remade = true;
    job->ctx->jobs->tally.remade++;
    safe_log (job->ctx->h, LOG_WARNING, "%s: the workflow is made anew: NNF had "
              "not seen its Servers when it looked", job_label (job, label));
}

void jobs_forget_workflow (struct job *job)
{
    job->facts->absent = true;
    if (job->wf) {
        note_outdated (job);
        free_space (job, false);
        job->ctx->events->workflow_gone (job);
        dws_workflow_destroy (job->wf);
        job->wf = NULL;
        free (job->object);
        job->object = NULL;
        job->generation++;
        underway_workflow_gone (&job->underway, job->facts);
    }
    jobs_changed (job);
}

/* A job may have two workflows, if a lost agent created one and then a name
 * became free. The second is learned from a later snapshot.
 */
static bool is_second (const struct job *job, const struct dws_workflow *wf)
{
    return job->wf && strcmp (job->wf->name, wf->name) != 0;
}

bool job_torn_down (const struct job *job)
{
    return job->wf && job->wf->state == DWS_STATE_TEARDOWN && job->wf->ready;
}

/* The name proves nothing, since anybody may choose it; flux-coral2 also writes
 * the job id into the object.
 */
static bool may_be_adopted (const struct dws_workflow *wf)
{
    flux_jobid_t id;

    return wf->noted
        && flux_job_id_parse (wf->noted, &id) == 0
        && id == wf->jobid;
}

static bool is_same (const struct dws_workflow *a, const struct dws_workflow *b)
{
    return a && b && a->uid && b->uid && !strcmp (a->uid, b->uid);
}

/* A workflow made by an older release carries only the label of its instance. If
 * somebody changes the label of a workflow of ours, keep the workflow.
 */
static void keep_ours (const struct job *job, struct dws_workflow *wf)
{
    if (job && !wf->ours && is_same (job->wf, wf) && job->wf->ours) {
        wf->ours = true;
        wf->unlabelled = true;
        wf->stray = false;
    }
}

/* The job of a workflow, or NULL if it is not to be learned.
 */
static struct job *job_of (struct jobs *jobs, struct dws_workflow *wf,
                           bool deleted)
{
    struct job *job = jobs_find (jobs, wf->jobid);

    keep_ours (job, wf);
    if (!(wf->ours || may_be_adopted (wf))
        || (!job && (deleted || !(job = add_orphan (jobs, wf->jobid))))
        || is_second (job, wf))
        return NULL;
    /* Set this even if the list is older than a version seen in a command's
     * result. */
    job->seen = true;
    jobs->ctx->early |= wf->data_first;
    return wf->version < job->version ? NULL : job;
}

/* Convert stamps of Kubernetes, which are wall clock time, to the timeline.
 */
static void place_times (struct timeline *timeline, struct dws_workflow *wf)
{
    wf->t_desired = timeline_of (timeline, wf->t_desired);
    wf->t_ready = timeline_of (timeline, wf->t_ready);
    wf->t_stamp = timeline_of (timeline, wf->stamped);
    wf->t_failed = timeline_of (timeline, wf->failed_at);
}

void jobs_learn_workflow (struct jobs *jobs, struct dws_workflow *wf,
                          const char *text, bool deleted)
{
    struct job *job = job_of (jobs, wf, deleted);

    if (!job) {
        dws_workflow_destroy (wf);
        return;
    }
    job->version = wf->version;
    if (deleted) {
        dws_workflow_destroy (wf);
        jobs_doubt_workflow (job);
        return;
    }
    if (job->wf && job->wf->uid && wf->uid && !is_same (job->wf, wf))
        jobs_forget_workflow (job);     // another of the same name
    job->facts->absent = false;
    place_times (jobs->ctx->timeline, wf);
    dws_workflow_inherit (wf, job->wf, timeline_now (jobs->ctx->timeline));
    dws_workflow_destroy (job->wf);
    job->wf = wf;
    free (job->object);
    job->object = NULL;
    if (facts_complete (jobs) && text)
        job->object = strdup (text);
    if (job_torn_down (job))
        free_space (job, true);
    jobs_changed (job);
}

/* Under way or not
 */

static void job_retry_cb (void *arg)
{
    struct job *job = arg;

    if (underway_repeat (&job->underway, job->facts))
        retry_after (job->retry, BACKOFF_MIN);
    jobs_changed (job);
}

static void repeat_later (struct job *job)
{
    if (!job->retry
        && !(job->retry = retry_create (job->ctx->h, BACKOFF_MIN, BACKOFF_MAX,
                                        job_retry_cb, job)))
        safe_log_error (job->ctx->h, "timer");
    else
        retry_later (job->retry);
}

void job_begin (struct job *job, enum dws_action_kind kind, enum way way)
{
    underway_begin (&job->underway, job->facts, kind, way);
}

void job_end (struct job *job, enum dws_action_kind kind, enum way way,
              bool ok)
{
    bool well = underway_end (&job->underway, job->facts, kind, way, ok);

    if (!ok)
        repeat_later (job);
    else if (well && job->retry)
        retry_reset (job->retry);
    jobs_changed (job);
}

static void hasten_cb (struct job *job, void *arg)
{
    if (job->retry && !retry_is_first (job->retry)) {
        retry_reset (job->retry);
        retry_after (job->retry, 0.);
    }
}

void jobs_hasten (struct jobs *jobs)
{
    jobs_each (jobs, hasten_cb, NULL);
}

void job_set_retry_reason (struct job *job, const char *text)
{
    free (job->retry_reason);
    job->retry_reason = text ? strdup (text) : NULL;
}

static void agent_lost_cb (struct job *job, void *arg)
{
    job_set_retry_reason (job, NULL);
    /* A workflow that was to be created may have been. */
    if ((job->facts->busy & DWS_BUSY (DWS_ACT_CREATE)))
        job->facts->absent = false;
    for (int slot = 0; slot < SLOT_QUERIES; slot++)
        job_slot_clear (job, slot);
    underway_agent_lost (&job->underway, job->facts);
    job->version = 0;
}

void jobs_agent_lost (struct jobs *jobs)
{
    jobs->known[JOBS_OF_KUBERNETES] = false;
    jobs_each (jobs, agent_lost_cb, NULL);
}

struct jobs *jobs_create (struct dws_ctx *ctx)
{
    struct jobs *jobs;

    if (!(jobs = calloc (1, sizeof (*jobs))))
        return NULL;
    jobs->ctx = ctx;
    jobs->tail = &jobs->head;
    if (!(jobs->map = idmap_create (job_destroy))
        || !(jobs->kick = timer_make (ctx->h, jobs_kick_cb, jobs))) {
        jobs_destroy (jobs);
        return NULL;
    }
    return jobs;
}

void jobs_destroy (struct jobs *jobs)
{
    if (jobs) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (jobs->kick);
        idmap_destroy (jobs->map);
        free (jobs);
    }
}

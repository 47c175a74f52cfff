/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See jobs.h.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "actions.h"
#include "agent.h"
#include "annotate.h"
#include "config.h"
#include "explain.h"
#include "holds.h"
#include "idmap.h"
#include "jobs.h"
#include "losses.h"
#include "space.h"
#include "sync.h"

#define BACKOFF_MIN 0.5
#define BACKOFF_MAX 60.

/* So many decisions are taken before the reactor looks at messages again, and
 * between two messages of which it has many. All make somebody wait who asks
 * for dws.status; but a report may tell of a dozen jobs.
 */
#define DECISIONS 32
#define DECISIONS_BETWEEN 16

/* With more jobs than that to decide about, messages have to wait for some of
 * it: each job may hold an object until it is decided on.
 */
#define BACKLOG_MAX 64

/* What goes through the agent, and is lost with it.
 */
#define AGENT_KINDS \
    (DWS_BUSY (DWS_ACT_CREATE) | DWS_BUSY (DWS_ACT_BREAKDOWNS) \
     | DWS_BUSY (DWS_ACT_SERVERS) | DWS_BUSY (DWS_ACT_COMPUTES) \
     | DWS_BUSY (DWS_ACT_DESIRE) | DWS_BUSY (DWS_ACT_TEARDOWN) \
     | DWS_BUSY (DWS_ACT_MOUNTS) | DWS_BUSY (DWS_ACT_ALLOCATIONS) \
     | DWS_BUSY (DWS_ACT_EXCLUDE) | DWS_BUSY (DWS_ACT_FORCE_READY) \
     | DWS_BUSY (DWS_ACT_DISABLE) | DWS_BUSY (DWS_ACT_MOVEMENTS) \
     | DWS_BUSY (DWS_ACT_PROGRESS) \
     | DWS_BUSY (DWS_ACT_FINALIZER) | DWS_BUSY (DWS_ACT_DELETE))

struct jobs {
    struct dws_ctx *ctx;
    struct idmap *map;          // job id -> struct job
    struct job *head;           // changed jobs, oldest first
    struct job **tail;
    size_t backlog;             // so many
    struct tally tally;
    flux_watcher_t *kick;       // runs at the next turn of the reactor
};

void jobs_forget_space (struct job *job)
{
    space_give_back (job->ctx->used, job->space);
    json_decref (job->space);
    job->space = NULL;
}

static void job_destroy (void *value)
{
    struct job *job = value;

    if (job) {
        int saved_errno = errno;
        tally_remove (&job->ctx->jobs->tally, job);
        jobs_forget_space (job);
        json_decref (job->reserved);
        json_decref (job->object);
        json_decref (job->servers);
        flux_watcher_destroy (job->wake);
        flux_watcher_destroy (job->retry);
        json_decref (job->breakdowns);
        note_destroy (job->note);
        free (job->trouble);
        explanation_destroy (job->explanation);
        dws_workflow_destroy (job->wf);
        dws_job_destroy (job->facts);
        free (job);
        errno = saved_errno;
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

bool jobs_each_part (struct jobs *jobs, size_t *place, size_t count,
                     void (*cb)(struct job *job, void *arg), void *arg)
{
    struct each each = { cb, arg };

    return idmap_each_part (jobs->map, place, count, each_cb, &each);
}

/* Deciding
 */

static bool facts_complete (struct dws_ctx *ctx)
{
    return sync_done (ctx->sync) && agent_ready (ctx->agent);
}

/* A timer rather than an idle watcher: it is not kept waiting by messages.
 */
static void kick (struct jobs *jobs)
{
    flux_watcher_stop (jobs->kick);
    flux_timer_watcher_reset (jobs->kick, 0., 0.);
    flux_watcher_start (jobs->kick);
}

void jobs_changed (struct job *job)
{
    struct jobs *jobs = job->ctx->jobs;

    tally_update (&jobs->tally, job);
    annotate_start (job->ctx->annotate);
    if (job->changed || !facts_complete (job->ctx))
        return;
    job->changed = true;
    job->next = NULL;
    *jobs->tail = job;
    jobs->tail = &job->next;
    jobs->backlog++;
    kick (jobs);
}

static void changed_cb (struct job *job, void *arg)
{
    jobs_changed (job);
}

void jobs_changed_all (struct jobs *jobs)
{
    jobs_each (jobs, changed_cb, NULL);
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

static void wake_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                     void *arg)
{
    jobs_changed (arg);
}

/* (Re)start a job's timer. Without memory for it the job waits for the next
 * change, which is what it did before.
 */
static void set_timer (struct job *job, flux_watcher_t **w, double after,
                       flux_watcher_f cb)
{
    flux_reactor_t *r = flux_get_reactor (job->ctx->h);

    if (!*w && !(*w = flux_timer_watcher_create (r, after, 0., cb, job))) {
        flux_log_error (job->ctx->h, "timer");
        return;
    }
    flux_watcher_stop (*w);
    flux_timer_watcher_reset (*w, after, 0.);
    flux_watcher_start (*w);
}

void jobs_wake (struct job *job, double after)
{
    set_timer (job, &job->wake, after, wake_cb);
}

static bool is_over (struct job *job)
{
    if (job->wf || (job->facts->phase != DWS_PHASE_GONE
                    && !job->facts->abandoned))
        return false;
    for (int i = 0; i < DWS_ACT_COUNT; i++) {
        if (job->under_way[i])
            return false;
    }
    return true;
}

static void decide (struct jobs *jobs, struct job *job)
{
    struct dws_actions actions;
    double now = flux_reactor_time ();

    if (is_over (job)) {
        idmap_delete (jobs->map, job->facts->id);
        return;
    }
    if (dws_reconcile (job->facts, job->wf, &jobs->ctx->config->policy,
                       now, &actions) < 0) {
        flux_log_error (jobs->ctx->h, "reconcile");
        return;
    }
    if (actions.wake > 0.)
        set_timer (job, &job->wake, actions.wake > now
                                    ? actions.wake - now : 0., wake_cb);
    else if (job->wake)
        flux_watcher_stop (job->wake);
    actions_run (job, &actions);
    json_decref (job->object);
    job->object = NULL;
}

static void decide_some (struct jobs *jobs, int count)
{
    struct job *job;
    bool complete = facts_complete (jobs->ctx);

    while (count-- > 0 && (job = pop_changed (jobs))) {
        if (complete)
            decide (jobs, job);
    }
}

static void kick_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                     void *arg)
{
    struct jobs *jobs = arg;

    decide_some (jobs, DECISIONS);
    if (jobs->head)
        kick (jobs);
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
    return job;
}

struct job *jobs_learn (struct jobs *jobs, struct dws_job *facts)
{
    struct job *job;

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
    facts->t_gone = flux_reactor_time ();
    if (!(job = job_add (jobs, facts)))
        dws_job_destroy (facts);
    return job;
}

void jobs_forget_workflow (struct job *job)
{
    if (job->wf) {
        losses_vanished (job);
        holds_end (job);
        dws_workflow_destroy (job->wf);
        job->wf = NULL;
        json_decref (job->object);
        job->object = NULL;
        job->reading = 0;
        job->generation++;
        job->facts->saved = 0;
        jobs_forget_space (job);
        json_decref (job->servers);
        job->servers = NULL;
        json_decref (job->breakdowns);
        job->breakdowns = NULL;
    }
    jobs_changed (job);
}

/* A job may have two in the end, if an agent that is gone made one and then a
 * name became free. The second has its turn with a later snapshot.
 */
static bool is_second (const struct job *job, const struct dws_workflow *wf)
{
    return job->wf && strcmp (job->wf->name, wf->name) != 0;
}

void jobs_learn_workflow (struct jobs *jobs, json_t *object, bool deleted)
{
    struct dws_workflow *wf;
    struct job *job;
    dws_error_t error;

    if (!(wf = dws_workflow_decode (object, jobs->ctx->instance, &error))) {
        if (errno == ENOMEM)
            flux_log_error (jobs->ctx->h, "workflow");
        return;
    }
    if (!wf->ours
        || (!(job = jobs_find (jobs, wf->jobid))
            && (deleted || !(job = add_orphan (jobs, wf->jobid))))
        || is_second (job, wf)) {
        dws_workflow_destroy (wf);
        return;
    }
    /* Also when a list is older than what the result of a command has shown. */
    job->seen = true;
    if (wf->version < job->version) {
        dws_workflow_destroy (wf);
        return;
    }
    job->version = wf->version;
    if (deleted) {
        dws_workflow_destroy (wf);
        jobs_forget_workflow (job);
        return;
    }
    if (job->wf && job->wf->uid && wf->uid
        && strcmp (job->wf->uid, wf->uid) != 0)
        jobs_forget_workflow (job);     // another of the same name
    dws_workflow_inherit (wf, job->wf, flux_reactor_time ());
    dws_workflow_destroy (job->wf);
    job->wf = wf;
    json_decref (job->object);
    job->object = facts_complete (jobs->ctx) ? json_incref (object) : NULL;
    jobs_changed (job);
}

/* Under way or not
 */

static void retry_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                      void *arg)
{
    struct job *job = arg;

    for (int i = 0; i < DWS_ACT_COUNT; i++) {
        uint32_t bit = DWS_BUSY (i);

        /* A late result must not be taken for one of the next attempt. */
        if ((job->failed & bit) && job->under_way[i] == 0) {
            job->failed &= ~bit;
            job->facts->busy &= ~bit;
        }
    }
    if (job->failed)
        set_timer (job, &job->retry, BACKOFF_MIN, retry_cb);
    jobs_changed (job);
}

void job_begin (struct job *job, enum dws_action_kind kind)
{
    job->under_way[kind]++;
    job->facts->busy |= DWS_BUSY (kind);
}

void job_end (struct job *job, enum dws_action_kind kind, bool ok)
{
    uint32_t bit = DWS_BUSY (kind);

    if (job->under_way[kind] > 0)
        job->under_way[kind]--;
    if (!ok) {
        job->failed |= bit;
        job->backoff = job->backoff > 0. ? job->backoff * 2. : BACKOFF_MIN;
        if (job->backoff > BACKOFF_MAX)
            job->backoff = BACKOFF_MAX;
        set_timer (job, &job->retry, job->backoff, retry_cb);
    }
    if (job->under_way[kind] == 0 && !(job->failed & bit)) {
        job->backoff = 0.;
        job->facts->busy &= ~bit;
    }
    jobs_changed (job);
}

void job_set_trouble (struct job *job, const char *text)
{
    free (job->trouble);
    job->trouble = text ? strdup (text) : NULL;
}

static void agent_lost_cb (struct job *job, void *arg)
{
    job_set_trouble (job, NULL);
    for (int i = 0; i < DWS_ACT_COUNT; i++) {
        if (AGENT_KINDS & DWS_BUSY (i))
            job->under_way[i] = 0;
    }
    job->under_way[DWS_ACT_SAVE] -= job->reads;
    job->reads = 0;
    if (job->under_way[DWS_ACT_SAVE] == 0)
        job->facts->busy &= ~DWS_BUSY (DWS_ACT_SAVE);
    job->facts->saved &= ~job->reading;
    job->reading = 0;
    job->facts->busy &= ~AGENT_KINDS;
    job->failed &= ~AGENT_KINDS;
    job->version = 0;
    explanation_destroy (job->explanation);
    job->explanation = NULL;
    json_decref (job->breakdowns);
    job->breakdowns = NULL;
}

void jobs_agent_lost (struct jobs *jobs)
{
    jobs_each (jobs, agent_lost_cb, NULL);
}

struct jobs *jobs_create (struct dws_ctx *ctx)
{
    struct jobs *jobs;
    flux_reactor_t *r = flux_get_reactor (ctx->h);

    if (!(jobs = calloc (1, sizeof (*jobs))))
        return NULL;
    jobs->ctx = ctx;
    jobs->tail = &jobs->head;
    if (!(jobs->map = idmap_create (job_destroy))
        || !(jobs->kick = flux_timer_watcher_create (r, 0., 0.,
                                                         kick_cb, jobs))) {
        jobs_destroy (jobs);
        return NULL;
    }
    return jobs;
}

void jobs_destroy (struct jobs *jobs)
{
    if (jobs) {
        int saved_errno = errno;
        flux_watcher_destroy (jobs->kick);
        idmap_destroy (jobs->map);
        free (jobs);
        errno = saved_errno;
    }
}

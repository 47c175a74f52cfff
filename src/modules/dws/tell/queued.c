/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See queued.h. Each step of a check begins when all requests of the step before are
 * answered. Answers that arrive during a later check are dropped.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flux/core.h>

#include "libdws/directive/command.h"
#include "libdws/tell/shortage.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "base/calls.h"
#include "base/timer.h"
#include "facts/config.h"
#include "health/health.h"
#include "sched/pool.h"
#include "tell/annotate.h"
#include "tell/list.h"
#include "tell/queued.h"

/* Seconds from a job's arrival in the queue to the first check, so that a job that gets
 * nodes at once causes none, and between checks.
 */
#define FIRST 2.
#define LOOK 10.

/* Upper bounds on jobs that learn why they wait, and on different constraints for which
 * nodes are counted: each count takes some milliseconds on the largest machine.
 */
#define JOBS_MAX 50
#define COUNTED_MAX 5

struct queued {
    struct dws_ctx *ctx;
    flux_watcher_t *timer;
    bool running;
    int look;                   // the number of this look
    int waits;                  // requests of this look without an answer
    void (*next)(struct queued *queued);        // when all are answered
    json_t *jobs;               // {ID: {"jobspec", "urgency"}}
    json_t *queues;             // {NAME: why it is stopped, or null}
    json_t *last;               // 'queues' of the latest look with all answers, or NULL
};

/* The nodes that satisfy one constraint.
 */
struct places_of {
    json_t *constraint;
    const char *bad;            // nodes that do not count as free, or NULL
    int64_t cores;
    struct dws_places *places;
};

static bool is_queued (const struct job *job)
{
    return job->facts->phase == DWS_PHASE_PENDING && job->facts->directives;
}

static void id_of (const struct job *job, char buf[24])
{
    snprintf (buf, 24, "%" PRIu64, job->facts->id);
}

static json_t *entry_of (const struct queued *queued, const struct job *job)
{
    char id[24];

    id_of (job, id);
    return json_object_get (queued->jobs, id);
}

/* Requests
 */

static void ask (struct queued *queued, flux_future_t *f, uint64_t id, call_f cb)
{
    if (calls_add (queued->ctx, f, id, queued->look, cb) == 0)
        queued->waits++;
    else
        safe_log_error (queued->ctx->h, "queued jobs");
}

static void answered (struct queued *queued)
{
    if (--queued->waits == 0)
        queued->next (queued);
}

/* Requests that could not be sent count as answered.
 */
static void asked_all (struct queued *queued, void (*next)(struct queued *))
{
    queued->next = next;
    answered (queued);
}

/* Judgement
 */

static const struct dws_places *count (struct queued *queued, json_t *rabbits,
                                       struct places_of counted[COUNTED_MAX],
                                       json_t *constraint, const char *bad,
                                       int64_t cores)
{
    dws_error_t error;

    for (int i = 0; i < COUNTED_MAX; i++) {
        struct places_of *c = &counted[i];

        if (!c->places) {
            if (!(c->places = dws_places_create (pool_last (queued->ctx->pool),
                                                 constraint, rabbits, bad,
                                                 cores, &error))) {
                safe_log (queued->ctx->h, LOG_ERR, "queued jobs: %s",
                          error.text);
                return NULL;
            }
            c->constraint = constraint;
            c->bad = bad;
            c->cores = cores;
            return c->places;
        }
        if (c->cores == cores && c->bad == bad
            && (constraint ? json_equal (c->constraint, constraint)
                           : !c->constraint))
            return c->places;
    }
    return NULL;
}

/* The scheduler gives nodes without a working rabbit to no job that uses storage.
 */
static const char *bad_for (const struct job *job)
{
    return (job->facts->commands & ~DWS_COMMAND_DESTROY_PERSISTENT)
           ? health_bad (job->ctx->health) : NULL;
}

static void judge (struct queued *queued, struct job *job, json_t *rabbits,
                   struct places_of counted[COUNTED_MAX])
{
    json_t *entry = entry_of (queued, job);
    const struct dws_places *places;
    char text[DWS_SHORTAGE_SIZE] = "";
    const char *queue = "";
    const char *stopped = NULL;
    json_t *resources = NULL;
    json_t *constraint = NULL;
    struct dws_need need;

    (void)json_unpack (entry, "{s:{s:o s?{s?{s?s s?o}}}}",
                       "jobspec", "resources", &resources,
                       "attributes", "system", "queue", &queue,
                       "constraints", &constraint);
    stopped = json_string_value (json_object_get (queued->queues, queue));
    if (!dws_need_read (resources, &need))
        annotate_shortage (job, "");
    else if (json_is_integer (json_object_get (entry, "urgency"))
             && json_integer_value (json_object_get (entry, "urgency")) == 0)
        annotate_shortage (job, "its release: it is held, with urgency 0");
    else if (stopped)
        annotate_shortage (job, stopped);
    else if ((places = count (queued, rabbits, counted, constraint,
                              bad_for (job), need.cores)))
        annotate_shortage (job, dws_shortage_text (&need, places, text));
    else
        annotate_shortage (job, "");
}

static void judge_all (struct queued *queued)
{
    struct places_of counted[COUNTED_MAX] = { { 0 } };
    struct asker asker = { .owner = false };
    struct job *job = NULL;
    json_t *rabbits;

    json_decref (queued->last);
    queued->last = json_copy (queued->queues);
    if (!queued->ctx->config->topology
        || !(rabbits = list_rabbits (queued->ctx, &asker)))
        return;
    while ((job = jobs_next (queued->ctx->jobs, job ? job->facts->id : 0))) {
        if (is_queued (job))
            judge (queued, job, json_object_get (rabbits, "rabbits"), counted);
    }
    for (int i = 0; i < COUNTED_MAX; i++)
        dws_places_destroy (counted[i].places);
    json_decref (rabbits);
}

/* Queues
 */

static void queue_cb (const struct call *call, flux_future_t *f)
{
    struct queued *queued = call->ctx->queued;
    const char *name = "";
    const char *why = NULL;
    int start = 1;
    const char *key;
    json_t *value;
    uint64_t index = 0;

    if (call->kind != queued->look)
        return;
    json_object_foreach (queued->queues, key, value) {
        if (index++ == call->jobid)
            name = key;
    }
    if (flux_rpc_get_unpack (f, "{s?b s?s}", "start", &start,
                             "stop_reason", &why) == 0 && !start)
        json_object_set_new (queued->queues, name, json_sprintf (
                                 "its queue, which is stopped%s%.100s%s",
                                 why ? " (" : "", why ? why : "",
                                 why ? ")" : ""));
    answered (queued);
}

static void ask_queues (struct queued *queued)
{
    uint64_t index = 0;
    const char *key;
    json_t *value;

    json_object_foreach (queued->jobs, key, value) {
        const char *queue = "";

        (void)json_unpack (value, "{s:{s:{s:{s:s}}}}", "jobspec", "attributes",
                           "system", "queue", &queue);
        (void)json_object_set_new (queued->queues, queue, json_null ());
    }
    queued->waits = 1;
    json_object_foreach (queued->queues, key, value)
        ask (queued, calls_rpc (queued->ctx->h, "job-manager.queue-status",
                                "{s:s*}", "name", *key ? key : NULL),
             index++, queue_cb);
    asked_all (queued, judge_all);
}

/* Jobs
 */

static void learn (const struct call *call, const char *key, json_t *value)
{
    struct queued *queued = call->ctx->queued;
    struct job *job = jobs_find (queued->ctx->jobs, call->jobid);

    if (call->kind == queued->look) {
        if (job && value)
            (void)json_object_set (entry_of (queued, job), key, value);
        answered (queued);
    }
}

static void jobspec_cb (const struct call *call, flux_future_t *f)
{
    const char *text = NULL;
    json_t *jobspec = NULL;

    if (flux_rpc_get_unpack (f, "{s:s}", "jobspec", &text) == 0)
        jobspec = json_loads (text, 0, NULL);
    learn (call, "jobspec", jobspec);
    json_decref (jobspec);
}

static void urgency_cb (const struct call *call, flux_future_t *f)
{
    json_t *urgency = NULL;

    (void)flux_rpc_get_unpack (f, "{s:{s:o}}", "job", "urgency", &urgency);
    learn (call, "urgency", urgency);
}

static void ask_job (struct queued *queued, struct job *job)
{
    json_int_t id = job->facts->id;
    char key[24];

    id_of (job, key);
    if (json_object_set_new (queued->jobs, key, json_object ()) < 0)
        return;
    ask (queued, calls_rpc (queued->ctx->h, "job-info.lookup",
                            "{s:I s:[s] s:i}", "id", id, "keys", "jobspec",
                            "flags", FLUX_JOB_LOOKUP_CURRENT),
         id, jobspec_cb);
    ask (queued, calls_rpc (queued->ctx->h, "job-list.list-id", "{s:I s:[s]}",
                            "id", id, "attrs", "urgency"),
         id, urgency_cb);
}

static void ask_jobs (struct dws_ctx *ctx, const struct dws_pool *nodes)
{
    struct queued *queued = ctx->queued;
    struct job *job = NULL;
    int count = 0;

    queued->look++;
    (void)json_object_clear (queued->jobs);
    (void)json_object_clear (queued->queues);
    queued->waits = 1;
    while (count < JOBS_MAX
           && (job = jobs_next (ctx->jobs, job ? job->facts->id : 0))) {
        if (is_queued (job)) {
            ask_job (queued, job);
            count++;
        }
    }
    asked_all (queued, ask_queues);
}

/* The timer
 */

static void see_job (struct job *job, void *arg)
{
    bool *any = arg;

    *any = *any || is_queued (job);
}

static void look_cb (flux_reactor_t *r, flux_watcher_t *w, int revents, void *arg)
{
    struct queued *queued = arg;
    bool any = false;

    jobs_each (queued->ctx->jobs, see_job, &any);
    if ((queued->running = any)) {
        pool_ask (queued->ctx->pool, ask_jobs);
        timer_start (w, LOOK);
    }
}

void queued_see_job (struct queued *queued, const struct job *job)
{
    if (!queued->running && is_queued (job)) {
        queued->running = true;
        timer_start (queued->timer, FIRST);
    }
}

bool queued_is_stopped (const struct queued *queued, const struct job *job)
{
    const char *queue = job->facts->queue;

    return json_is_string (json_object_get (queued->last, queue ? queue : ""));
}

struct queued *queued_create (struct dws_ctx *ctx)
{
    struct queued *queued;

    if (!(queued = calloc (1, sizeof (*queued))))
        return NULL;
    queued->ctx = ctx;
    if (!(queued->jobs = json_object ()) || !(queued->queues = json_object ())
        || !(queued->timer = timer_make (ctx->h, look_cb, queued))) {
        queued_destroy (queued);
        return NULL;
    }
    return queued;
}

void queued_destroy (struct queued *queued)
{
    if (queued) {
        ERRNO_SAFE_BLOCK;
        flux_watcher_destroy (queued->timer);
        json_decref (queued->jobs);
        json_decref (queued->queues);
        json_decref (queued->last);
        free (queued);
    }
}

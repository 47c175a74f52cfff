/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See annotate.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/facts/progress.h"
#include "libdws/util/jsonmake.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "base/calls.h"
#include "base/timeline.h"
#include "base/timer.h"
#include "facts/config.h"
#include "facts/totals.h"
#include "tell/annotate.h"

/* Upper bounds on memos per interval and on pending queries.
 */
#define MEMOS_MAX 200
#define QUERIES_MAX 8

/* Upper bound on jobs annotated per reactor turn.
 */
#define JOBS_PER_TURN 64

/* The cost of a query grows with the number of objects: pause one interval for
 * each of this many.
 */
#define OBJECTS_PER_INTERVAL 256

/* The shortest interval between two annotations of a job (s).
 */
#define INTERVAL 2.

struct annotate {
    struct dws_ctx *ctx;
    flux_watcher_t *timer;
    bool running;
    struct entry *list;         // to be looked at: their jobs have changed, or may
    struct entry *due;          // those of this interval
    int memos;                  // still allowed in this interval
    int queries;                // under way
    bool again;                 // there is more to do at the next interval
};

/* The annotation of a job that has one, or had.
 */
struct note {
    char *text;                 // the annotation, or NULL
    struct dws_progress progress;
    bool asking;                // for newer progress
    unsigned int age;           // intervals since the last answer
};

/* Of each job that was ever in the list.
 */
struct entry {
    struct job *job;
    struct entry *next;
    struct entry **at;          // the pointer to this entry in a list, or NULL
    struct note *note;          // or NULL: too large to keep for each job
    char *shortage;             // annotate_shortage(), or NULL
    bool waited;                // at the last interval
};

static void leave_list (struct entry *entry)
{
    if (!entry->at)
        return;
    if ((*entry->at = entry->next))
        entry->next->at = entry->at;
    entry->at = NULL;
}

static void forget_note (struct entry *entry)
{
    if (entry->note) {
        free (entry->note->text);
        free (entry->note);
        entry->note = NULL;
    }
}

static void entry_destroy (struct job *job, void *data)
{
    struct entry *entry = data;

    leave_list (entry);
    forget_note (entry);
    free (entry->shortage);
    free (entry);
}

static struct entry *entry_make (struct job *job)
{
    struct entry *entry = job_slot_make (job, SLOT_ANNOTATE, sizeof (*entry),
                                         entry_destroy);

    if (entry)
        entry->job = job;
    return entry;
}

static struct note *note_of (const struct job *job)
{
    const struct entry *entry = job_slot (job, SLOT_ANNOTATE);

    return entry ? entry->note : NULL;
}

/* List only changed jobs, as ten thousand may wait.
 */
static void enter_list (struct entry **list, struct entry *entry)
{
    if (entry->at)
        return;
    if ((entry->next = *list))
        entry->next->at = &entry->next;
    entry->at = list;
    *list = entry;
}

void annotate_memos (struct job *job, json_t *memos, bool volat)
{
    flux_future_t *f;

    f = calls_rpc (job->ctx->h, "job-manager.memo", "{s:I s:b s:o}",
                   "id", (json_int_t)job->facts->id,
                   "volatile", volat,
                   "memo", memos);
    (void)calls_log (job->ctx, f, LOG_DEBUG, "memo");
}

static void set_note (struct job *job, const char *text)
{
    annotate_memos (job, json_pack ("{s:s?}", "rabbit", text), true);
}

static void show_note (struct entry *entry, const char *text)
{
    char *cpy;

    if (!(cpy = strdup (text)))
        return;
    free (entry->note->text);
    entry->note->text = cpy;
    set_note (entry->job, cpy);
}

void annotate_clear (struct job *job)
{
    struct entry *entry = job_slot (job, SLOT_ANNOTATE);

    if (!entry)
        return;
    entry->waited = false;
    if (entry->note && entry->note->text)
        set_note (job, NULL);
    ERRNO_SAFE (forget_note (entry));
}

void annotate_shortage (struct job *job, const char *text)
{
    struct entry *entry = entry_make (job);

    if (!entry || strcmp (entry->shortage ? entry->shortage : "", text) == 0)
        return;
    free (entry->shortage);
    entry->shortage = *text ? strdup (text) : NULL;
    annotate_see_job (job->ctx->annotate, job);
}

const char *annotate_text (struct job *job, char buf[DWS_WAITING_SIZE])
{
    const struct entry *entry = job_slot (job, SLOT_ANNOTATE);
    const struct note *note = note_of (job);

    dws_waiting_text (job->facts, job->wf, note ? &note->progress : NULL,
                      agent_link (job->ctx->agent), job->retry_reason,
                      timeline_now (job->ctx->timeline), buf);
    if (!*buf && entry && entry->shortage
        && job->facts->phase == DWS_PHASE_PENDING)
        snprintf (buf, DWS_WAITING_SIZE, "rabbit: waiting for %s",
                  entry->shortage);
    return buf;
}

/* Progress
 */

static void learn_progress (struct job *job, struct dws_progress *p,
                            json_t *objects)
{
    enum dws_state state = job->wf->state;
    int rc = 0;

    if (state == DWS_STATE_DATAIN || state == DWS_STATE_DATAOUT)
        dws_progress_movements (objects, state, p);
    else if (state == DWS_STATE_SETUP)
        rc = dws_progress_servers (objects, p);
    else
        rc = dws_progress_mounts (objects, state, p);
    if (rc < 0)
        safe_log (job->ctx->h, LOG_ERR, "progress: out of memory");
}

static void progress_cb (struct dws_ctx *ctx, struct job *job,
                         const struct command *cmd, json_t *report)
{
    json_t *objects = json_object_get (report, "objects");
    struct note *note = job ? note_of (job) : NULL;

    ctx->annotate->queries--;
    if (!note)
        return;
    note->asking = false;
    note->age = json_array_size (objects) / OBJECTS_PER_INTERVAL;
    if (objects && job->wf && cmd->generation == job->generation)
        learn_progress (job, &note->progress, objects);
}

static void look_again (struct annotate *annotate, struct entry *entry)
{
    enter_list (&annotate->list, entry);
    annotate->again = true;
}

static void ask_progress (struct annotate *annotate, struct entry *entry)
{
    struct job *job = entry->job;
    struct note *note = entry->note;
    const char *kind = dws_waiting_kind (job->facts, job->wf);
    json_t *command;

    if (!kind || !agent_ready (job->ctx->agent))
        return;
    look_again (annotate, entry);
    if (note->asking || annotate->queries >= QUERIES_MAX)
        return;
    if (note->age > 0) {
        note->age--;
        return;
    }
    command = command_list (job->wf, kind);
    dws_json_set (&command, "fields", json_pack ("[s,s,s,s,s]",
                                                 "spec.allocationSets",
                                                 "metadata.name",
                                                 "metadata.labels",
                                                 "spec.node", "status"));
    if (agent_query (job->ctx->agent, job, progress_cb, command) == 0) {
        annotate->queries++;
        note->asking = true;
    }
}

/* The interval
 */

static void tick_job (struct annotate *annotate, struct entry *entry)
{
    struct job *job = entry->job;
    char text[DWS_WAITING_SIZE];
    const char *shown = entry->note ? entry->note->text : NULL;

    if (totals_update_text (job->ctx->totals, job))     // others have a part in it
        enter_list (&annotate->list, entry);
    annotate_text (job, text);
    if (job->wf && job->wf->t_trouble > 0.)     // it may last
        look_again (annotate, entry);
    if (*text && !entry->waited) {    // it may be over by the next time
        entry->waited = true;
        look_again (annotate, entry);
        return;
    }
    if (strcmp (text, shown ? shown : "") != 0) {
        if (annotate->memos == 0) {
            look_again (annotate, entry);
            return;
        }
        annotate->memos--;
    }
    if (!*text) {
        annotate_clear (job);
        return;
    }
    if (!entry->note && !(entry->note = calloc (1, sizeof (*entry->note))))
        return;
    if (!shown || strcmp (text, shown) != 0)
        show_note (entry, text);
    ask_progress (annotate, entry);
}

static void start (struct annotate *annotate)
{
    if (annotate->running) {
        annotate->again = true;
        return;
    }
    timer_start (annotate->timer, INTERVAL);
    annotate->running = true;
}

static void annotate_tick_cb (flux_reactor_t *r, flux_watcher_t *w, int revents,
                              void *arg)
{
    struct annotate *annotate = arg;
    struct entry *entry;

    if (!annotate->due) {
        annotate->again = false;
        annotate->memos = MEMOS_MAX;
        if ((annotate->due = annotate->list))
            annotate->due->at = &annotate->due;
        annotate->list = NULL;
    }
    for (int i = 0; i < JOBS_PER_TURN && (entry = annotate->due); i++) {
        leave_list (entry);
        tick_job (annotate, entry);
    }
    if (annotate->due) {
        timer_start (annotate->timer, 0.);
        return;
    }
    annotate->running = false;
    if (annotate->again)
        start (annotate);
}

void annotate_see_job (struct annotate *annotate, struct job *job)
{
    struct entry *entry = entry_make (job);

    if (entry) {
        enter_list (&annotate->list, entry);
        start (annotate);
    }
}

static void see_cb (struct job *job, void *arg)
{
    annotate_see_job (arg, job);
}

void annotate_see_all (struct annotate *annotate)
{
    jobs_each (annotate->ctx->jobs, see_cb, annotate);
}

static void annotate_lost_cb (struct job *job, void *arg)
{
    if (note_of (job))
        note_of (job)->asking = false;
}

void annotate_agent_lost (struct annotate *annotate)
{
    annotate->queries = 0;
    jobs_each (annotate->ctx->jobs, annotate_lost_cb, NULL);
    annotate_see_all (annotate);
}

struct annotate *annotate_create (struct dws_ctx *ctx)
{
    struct annotate *annotate;

    if (!(annotate = calloc (1, sizeof (*annotate))))
        return NULL;
    annotate->ctx = ctx;
    if (!(annotate->timer = timer_make (ctx->h, annotate_tick_cb, annotate))) {
        annotate_destroy (annotate);
        return NULL;
    }
    return annotate;
}

void annotate_destroy (struct annotate *annotate)
{
    if (annotate) {
        ERRNO_SAFE_BLOCK;
        while (annotate->list)
            leave_list (annotate->list);
        while (annotate->due)
            leave_list (annotate->due);
        flux_watcher_destroy (annotate->timer);
        free (annotate);
    }
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Records in the KVS of a job's workflow, for the job's owner to read later:
 * how long each state took, the Workflow object, data movements, and the logs
 * of containers. Data movements are also read to see how far they have got.
 */

#include <errno.h>

#include "libdws/directive/command.h"
#include "libdws/facts/movements.h"
#include "libdws/facts/report.h"
#include "libdws/util/jsontext.h"
#include "libutil/safelog.h"
#include "act/action.h"
#include "act/writeback.h"
#include "act/kvs.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "base/timeline.h"
#include "facts/config.h"

/* The workflow
 */

/* Must the record of this state be written at once? Jobs that wait for staged data wait
 * for its record (dws-jobtap/waits.c), and the epilog waits for the record of Teardown.
 */
static bool is_awaited (const struct job *job, enum dws_state state)
{
    unsigned int commands = job->facts->commands;

    return (job->facts->saved & DWS_SAVED (DWS_STATE_TEARDOWN))
        || state == DWS_STATE_TEARDOWN
        || (state == DWS_STATE_DATAIN && (commands & DWS_COMMAND_COPY_IN))
        || (state == DWS_STATE_DATAOUT && (commands & DWS_COMMAND_COPY_OUT));
}

/* Note the timing of 'state', unless that is DWS_STATE_NONE, and the Workflow
 * object, if there is one.
 */
static int note_workflow (struct job *job, enum dws_state state,
                          const char *object)
{
    const struct dws_workflow *wf = job->wf;
    bool timed = wf && wf->state == state && wf->ready && wf->elapsed;

    if ((object && writeback_workflow (job, object) < 0)
        || (timed && writeback_timing (job, state, wf->elapsed) < 0))
        return -1;
    if ((object || timed) && is_awaited (job, state))
        return act_call (job, &action_save, writeback_commit (job), act_tried_cb);
    return 0;
}

static int read_workflow (struct job *job, uint32_t bit)
{
    if (act_send (job, &action_save, bit,
                  command_create_with ("get", "workflows", job->wf->namespace,
                                       job->wf->name,
                                       "whole", json_true ())) < 0)
        return -1;
    underway_read_begin (&job->underway, bit);
    return 0;
}

/* The job's record has the Workflow object if its change led to this action.
 * Otherwise read it.
 */
static int run_save (struct job *job, const struct dws_action *wanted)
{
    const char *object = wanted->whole ? job->object : NULL;
    int rc = 0;

    if (!job->wf)
        return 0;
    if (wanted->whole && !object)
        rc = read_workflow (job, wanted->bit);
    if (rc == 0)
        rc = note_workflow (job, wanted->state, object);
    if (rc == 0)
        underway_save (&job->underway, job->facts, wanted->bit);
    return rc;
}

/* Save the Workflow object that was read; result->object is NULL if the read
 * failed.
 */
static void workflow_read (struct job *job, const struct result *result,
                           const char *object)
{
    if (!result->current
        || !underway_read_end (&job->underway, (uint32_t)result->index))
        return;
    if (!object || note_workflow (job, DWS_STATE_NONE, object) < 0)
        safe_log (job->ctx->h, LOG_ERR, "rabbit_workflow could not be saved");
}

static bool save_result (struct job *job, const struct result *result)
{
    if (!result->ok)
        return false;
    workflow_read (job, result, dws_report_text (result->workflow));
    return true;
}

static bool save_failed (struct job *job, const struct result *result)
{
    workflow_read (job, result, NULL);
    return true;
}

const struct action action_save = {
    .kind = DWS_ACT_SAVE,
    .run = run_save,
    .result = save_result,
    .failed = save_failed,
};

/* Data movements and logs
 */

/* Indices of the commands of action_movements.
 */
enum {
    LIST_MOVEMENTS,
    LIST_LOGS,
};

static int run_movements (struct job *job, const struct dws_action *wanted)
{
    const struct dws_policy *policy = &job->ctx->config->policy;

    if (policy->save_datamovements > 0
        && act_send (job, &action_movements, LIST_MOVEMENTS,
                     command_list_whole (job->wf, "nnfdatamovements")) < 0)
        return -1;
    if (job->wf->containers && policy->container_log_bytes > 0
        && act_send (job, &action_movements, LIST_LOGS,
                     command_logs (job->wf, policy->container_log_bytes)) < 0)
        return -1;
    return 0;
}

/* Parse objects, skipping invalid ones.
 */
static json_t *parse_all (json_t *texts)
{
    json_t *objects = json_array ();
    json_t *text;
    size_t index;

    json_array_foreach (texts, index, text) {
        json_t *object = dws_jsontext_get (json_string_value (text));

        if (object)
            (void)json_array_append_new (objects, object);
    }
    return objects;
}

static void store_movements (struct job *job, json_t *texts)
{
    int max = job->ctx->config->policy.save_datamovements;
    json_t *objects = parse_all (texts);

    if (json_array_size (objects) > 0)
        (void)calls_log (job->ctx, kvs_save_movements (job, objects, max), LOG_ERR,
                         "rabbit_datamovements");
    json_decref (objects);
}

static void store_logs (struct job *job, json_t *logs)
{
    if (json_array_size (logs) > 0)
        (void)calls_log (job->ctx, kvs_save_logs (job, logs), LOG_ERR,
                         "rabbit_container_log");
}

static void movements_listed (struct job *job, int index, json_t *objects)
{
    if (index == LIST_LOGS)
        store_logs (job, objects);
    else
        store_movements (job, objects);
}

static bool movements_done (struct job *job)
{
    job->wf->movements = true;
    return true;
}

const struct action action_movements = {
    .kind = DWS_ACT_MOVEMENTS,
    .run = run_movements,
    .listed = movements_listed,
    .done = movements_done,
};

/* Progress
 */

static int run_progress (struct job *job, const struct dws_action *wanted)
{
    return act_send (job, &action_progress, 0,
                     command_list (job->wf, "nnfdatamovements"));
}

static void progress_listed (struct job *job, int index, json_t *objects)
{
    double bytes;
    int progress = dws_movements_progress (objects, &bytes);

    dws_workflow_set_progress (job->wf, progress, bytes,
                               timeline_now (job->ctx->timeline));
}

const struct action action_progress = {
    .kind = DWS_ACT_PROGRESS,
    .run = run_progress,
    .listed = progress_listed,
};

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Ends the prolog and the epilog, and reports errors to the owner, also after
 * the job has ended.
 */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "libdws/facts/history.h"
#include "libdws/graph/nodemap.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "act/action.h"
#include "act/writeback.h"
#include "act/kvs.h"
#include "act/late.h"
#include "act/objects.h"
#include "act/storage.h"
#include "base/timeline.h"
#include "facts/config.h"
#include "facts/space.h"
#include "facts/storages.h"
#include "sched/withheld.h"
#include "tell/annotate.h"
#include "tell/explain.h"
#include "tell/losses.h"

/* Prolog
 */

/* Containers see the storage of all nodes of their rabbit. The Storage objects say
 * in which order, so they have to be known.
 */
static int add_nodemap (struct job *job, json_t *variables)
{
    struct dws_nodemap_opts opts = {
        .left_out = storage_left_out (job),
        .storages = storages_by_name (job->ctx->storages),
    };
    char *s = NULL;
    int rc = 0;

    if (job->wf->containers && job->facts->hosts) {
        if (!space_known (job->ctx->space)) {
            errno = EAGAIN;
            return -1;
        }
        if (!(s = dws_nodemap (job->facts->hosts, job->ctx->config->topology,
                               &opts, NULL)))
            return -1;
        rc = json_object_set_new (variables, "DW_RABBIT_NODES",
                                  json_string (s));
        free (s);
        if (rc < 0)
            errno = ENOMEM;
    }
    return rc;
}

static int run_prolog_remove (struct job *job, const struct dws_action *wanted)
{
    json_t *variables;
    flux_future_t *f;

    if (!(variables = object_variables (job->wf, job->facts->directives)))
        return -1;
    if (add_nodemap (job, variables) < 0) {
        ERRNO_SAFE (json_decref (variables));
        return -1;
    }
    annotate_clear (job);
    writeback_send_memos (job);
    f = calls_rpc (job->ctx->h, "job-manager.dws.prolog-remove",
                   "{s:I s:o s:b}",
                   "id", (json_int_t)job->facts->id,
                   "variables", variables,
                   "token", job->wf->token != NULL);
    return act_call (job, &action_prolog_remove, f, act_done_cb);
}

static bool prolog_remove_done (struct job *job)
{
    dws_job_advance (job->facts, DWS_PHASE_RUNNING);
    return true;
}

const struct action action_prolog_remove = {
    .kind = DWS_ACT_PROLOG_REMOVE,
    .run = run_prolog_remove,
    .done = prolog_remove_done,
};

/* Epilog
 */

/* sched-rabbit has acknowledged the withheld storage: release the nodes. For Fluxion
 * withheld_ready() waits for that.
 */
static void hold_acknowledged_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = act_job (call);
    bool ok;

    if (!job)
        return;
    if (!(ok = flux_future_get (f, NULL) == 0))
        ERRNO_SAFE (space_withhold_failed (&job->claim));
    act_end (job, call, f, "hold", ok);
}

static int run_epilog_remove (struct job *job, const struct dws_action *wanted)
{
    flux_future_t *f;

    if (withheld_needed (job))
        return act_call (job, &action_epilog_remove, withheld_tell (job),
                         hold_acknowledged_cb);
    annotate_clear (job);
    writeback_flush (job);
    f = calls_rpc (job->ctx->h, "job-manager.dws.epilog-remove",
                   "{s:I}",
                   "id", (json_int_t)job->facts->id);
    return act_call (job, &action_epilog_remove, f, act_done_cb);
}

static bool epilog_remove_done (struct job *job)
{
    dws_job_advance (job->facts, DWS_PHASE_GONE);
    job->facts->t_gone = timeline_now (job->ctx->timeline);
    job->facts->released = true;
    return true;
}

const struct action action_epilog_remove = {
    .kind = DWS_ACT_EPILOG_REMOVE,
    .ready = withheld_ready,
    .run = run_epilog_remove,
    .done = epilog_remove_done,
};

/* Exceptions: raise and report wait for the details of a failure (explain.h),
 * because later actions, such as Teardown, may destroy the evidence.
 */

static int run_raise (struct job *job, const struct dws_action *wanted)
{
    char label[JOB_LABEL_SIZE];
    char text[DWS_EXPLAIN_SIZE];
    flux_future_t *f;

    explain_text (job, wanted->text, text);
    safe_log (job->ctx->h, LOG_ERR, "%s: %s", job_label (job, label), text);
    f = flux_job_raise (job->ctx->h, job->facts->id, wanted->type,
                        wanted->severity, text);
    return act_call (job, &action_raise, f, act_done_cb);
}

static bool raise_done (struct job *job)
{
    job->facts->exception = true;
    job->facts->raised = true;
    return true;
}

const struct action action_raise = {
    .kind = DWS_ACT_RAISE,
    .ready = explain_ready,
    .run = run_raise,
    .done = raise_done,
};

/* Write the progress of a stage-out that could be retried into the job's directory,
 * too. A late record needs its own commit.
 */
static int put_stage_out (struct job *job, const char *text, double until)
{
    json_t *record;
    int rc;

    if (job->wf->t_failed <= 0.)
        return 0;
    record = json_pack ("{s:s s:f}",
                        "state", !*text ? "moved" : until > 0. ? "failed"
                                                               : "lost",
                        "t", flux_reactor_time ());
    if (*text)
        (void)json_object_set_new (record, "text", json_string (text));
    if (until > 0.)
        (void)json_object_set_new (record, "until", json_real (until));
    rc = kvs_put_stage_out (job, record);
    ERRNO_SAFE (json_decref (record));
    if (rc == 0 && late_pending (job))
        rc = calls_log (job->ctx, kvs_wait (job), LOG_ERR, "stage-out");
    return rc;
}

/* Record the loss of an ended job, which can get no exception any more. Without
 * a text remove the loss.
 */
static int run_report (struct job *job, const struct dws_action *wanted)
{
    char buf[DWS_EXPLAIN_SIZE];
    const char *text = wanted->text;

    if (*text && !job->wf->deleting)
        text = explain_text (job, text, buf);
    if (put_stage_out (job, text, wanted->until) < 0)
        return -1;
    act_own (job)->loss_is_final = *text && wanted->until <= 0.;
    job->wf->recording = !act_own (job)->loss_is_final;
    return act_call (job, &action_report,
                     *text ? losses_report (job, text, wanted->until)
                           : losses_made_good (job),
                     act_done_cb);
}

/* 'recording' is false if the workflow has advanced meanwhile.
 */
static bool report_done (struct job *job)
{
    if (act_own (job)->loss_is_final)
        job->facts->reported = true;
    else if (job->wf)
        job->wf->recorded = job->wf->recording;
    return true;
}

const struct action action_report = {
    .kind = DWS_ACT_REPORT,
    .ready = explain_ready,
    .run = run_report,
    .done = report_done,
};

/* Convert stamps of the eventlog to the timeline. The epilog of a stranded job begins
 * when the job was found, which is on the timeline already.
 */
static void recall (struct job *job, const char *eventlog)
{
    struct dws_job *facts = job->facts;

    dws_job_recall (facts, eventlog, getuid ());
    if (!facts->stranded)
        facts->t_epilog = timeline_of (job->ctx->timeline, facts->t_epilog);
}

/* Without an eventlog (the job was purged) nothing is known about its end.
 */
static void eventlog_read_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = act_job (call);
    const char *eventlog = NULL;
    bool ok;

    if (!job)
        return;
    ok = flux_kvs_lookup_get (f, &eventlog) == 0 || errno == ENOENT;
    if (ok)
        recall (job, eventlog);
    if (job->facts->stranded)
        withheld_left (job);
    act_end (job, call, f, "eventlog", ok);
}

static int run_recall (struct job *job, const struct dws_action *wanted)
{
    return act_call (job, &action_recall,
                     kvs_lookup_job (job->ctx->h, job->facts->id, "eventlog"),
                     eventlog_read_cb);
}

const struct action action_recall = {
    .kind = DWS_ACT_RECALL,
    .run = run_recall,
};

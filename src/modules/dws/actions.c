/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See actions.h. Requests to the job manager and the KVS are here, commands
 * to the agent and their results in commands.c.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/jsontext.h"
#include "libdws/nodemap.h"
#include "actions.h"
#include "annotate.h"
#include "calls.h"
#include "commands.h"
#include "config.h"
#include "explain.h"
#include "failures.h"
#include "holds.h"
#include "kvs.h"
#include "losses.h"
#include "objects.h"
#include "storage.h"
#include "sync.h"
#include "trouble.h"

void actions_refuse (struct job *job, const char *text)
{
    char *cpy;

    if (job->facts->refusal)
        return;
    if (!(cpy = strdup (text))) {
        flux_log_error (job->ctx->h, "refusal");
        return;
    }
    job->facts->refusal = cpy;
    jobs_changed (job);
}

/* What the success of a request to the job manager says about the job.
 */
static void note_success (struct job *job, enum dws_action_kind kind)
{
    struct dws_job *facts = job->facts;

    switch (kind) {
        case DWS_ACT_RESOURCE_UPDATE:
            dws_job_advance (facts, DWS_PHASE_PENDING);
            json_decref (job->servers);
            job->servers = NULL;
            break;
        case DWS_ACT_PROLOG_REMOVE:
            dws_job_advance (facts, DWS_PHASE_RUNNING);
            break;
        case DWS_ACT_EPILOG_REMOVE:
            dws_job_advance (facts, DWS_PHASE_GONE);
            facts->t_gone = flux_reactor_time ();
            facts->released = true;
            break;
        case DWS_ACT_REPORT:
            facts->reported = true;
            break;
        case DWS_ACT_REJECT:
        case DWS_ACT_RAISE:
            facts->exception = true;
            facts->raised = true;
            break;
        default:
            break;
    }
}

/* A job that the job manager does not know is not active any more.
 */
static void call_done (const struct call *call, flux_future_t *f)
{
    struct dws_ctx *ctx = call->ctx;
    struct job *job = jobs_find (ctx->jobs, call->jobid);
    bool ok = true;

    if (!job)
        return;
    if (flux_future_get (f, NULL) == 0)
        note_success (job, call->kind);
    else if (errno == ENOENT && call->kind != DWS_ACT_SAVE) {
        if (dws_job_advance (job->facts, DWS_PHASE_GONE))
            job->facts->t_gone = flux_reactor_time ();
    }
    else {
        int errnum = errno;

        ok = call->kind == DWS_ACT_SAVE;
        trouble_log (job, call->kind, errnum, future_strerror (f, errnum));
        /* The plugin may have been away and have missed something. */
        if (errnum == ENOSYS || errnum == EHOSTUNREACH)
            sync_start (ctx->sync);
    }
    job_end (job, call->kind, ok);
}

/* An action has ended. If it has not reached 'what', errno says why.
 */
static void end (struct job *job, const struct call *call, flux_future_t *f,
                 const char *what, bool ok)
{
    char label[JOB_LABEL_SIZE];

    if (!ok)
        flux_log (call->ctx->h, LOG_ERR, "%s: %s: %s", job_label (job, label),
                  what, future_strerror (f, errno));
    job_end (job, call->kind, ok);
}

static void hosts_done (const struct call *call, flux_future_t *f)
{
    struct job *job = jobs_find (call->ctx->jobs, call->jobid);
    dws_error_t error;
    json_t *R;

    if (!job)
        return;
    if (!(R = kvs_lookup_R_get (f))) {
        end (job, call, f, "R", false);
        return;
    }
    if (dws_job_set_R (job->facts, R, &error) < 0)
        actions_refuse (job, error.text);
    storage_learn_R (job, R);
    json_decref (R);
    end (job, call, f, "R", true);
}

static int call (struct job *job, enum dws_action_kind kind, flux_future_t *f,
                 call_f cb)
{
    if (calls_add (job->ctx, f, job->facts->id, kind, cb) < 0)
        return -1;
    job_begin (job, kind);
    return 0;
}

static int send_resources (struct job *job, const struct demand *demand)
{
    flux_future_t *f;

    f = flux_rpc_pack (job->ctx->h, "job-manager.dws.resource-update",
                       FLUX_NODEID_ANY, 0, "{s:I s:O s:O}",
                       "id", (json_int_t)job->facts->id,
                       "resources", demand->resources,
                       "exclude", demand->constraint);
    return call (job, DWS_ACT_RESOURCE_UPDATE, f, call_done);
}

/* The prolog will find the daemons: now the job may go on.
 */
static void daemons_done (const struct call *call, flux_future_t *f)
{
    struct job *job = jobs_find (call->ctx->jobs, call->jobid);

    if (!job)
        return;
    job->daemons_saved = flux_future_get (f, NULL) == 0;
    end (job, call, f, "daemons", job->daemons_saved);
}

static int update_resources (struct job *job)
{
    struct demand demand;
    dws_error_t error;
    int rc;

    if (storage_demand (job, &demand, &error) < 0) {
        if (errno == EINVAL || errno == ENOSPC) {
            actions_refuse (job, error.text);
            return 0;
        }
        if (errno == EAGAIN) {      // read them once more
            dws_jsontext_set (&job->wf->breakdowns, NULL);
            jobs_changed (job);
            return 0;
        }
        return -1;
    }
    if (json_array_size (demand.units) > 0 && !job->daemons_saved)
        rc = call (job, DWS_ACT_RESOURCE_UPDATE,
                   kvs_save_daemons (job->ctx->commits, job->facts->id,
                                     demand.units),
                   daemons_done);
    else
        rc = send_resources (job, &demand);
    demand_clear (&demand);
    return rc;
}

static int reject (struct job *job, const struct dws_action *action)
{
    json_t *resources = NULL;
    char text[DWS_EXPLAIN_SIZE];
    flux_future_t *f;

    if (job->facts->resources
        && !(resources = dws_jsontext_get (job->facts->resources)))
        return -1;
    f = flux_rpc_pack (job->ctx->h, "job-manager.dws.resource-update",
                       FLUX_NODEID_ANY, 0, "{s:I s:o? s:n s:s}",
                       "id", (json_int_t)job->facts->id,
                       "resources", resources,
                       "exclude",
                       "errmsg", explain_text (job, action->text, text));
    return call (job, DWS_ACT_REJECT, f, call_done);
}

/* Containers see the storage of all nodes of their rabbit.
 */
static int add_nodemap (struct job *job, json_t *variables)
{
    char *s = NULL;
    int rc = 0;

    if (job->wf->containers && job->facts->hosts) {
        if (!(s = dws_nodemap (job->facts->hosts, job->ctx->config->topology,
                               NULL)))
            return -1;
        rc = json_object_set_new (variables, "DW_RABBIT_NODES",
                                  json_string (s));
        free (s);
        if (rc < 0)
            errno = ENOMEM;
    }
    return rc;
}

static int remove_prolog (struct job *job)
{
    json_t *variables;
    flux_future_t *f;

    if (!(variables = object_variables (job->wf,
                                        job->ctx->config->environment)))
        return -1;
    if (add_nodemap (job, variables) < 0) {
        int saved_errno = errno;
        json_decref (variables);
        errno = saved_errno;
        return -1;
    }
    annotate_clear (job);
    f = flux_rpc_pack (job->ctx->h, "job-manager.dws.prolog-remove",
                       FLUX_NODEID_ANY, 0, "{s:I s:o s:b}",
                       "id", (json_int_t)job->facts->id,
                       "variables", variables,
                       "token", job->wf->token != NULL);
    return call (job, DWS_ACT_PROLOG_REMOVE, f, call_done);
}

/* The scheduler knows: now the nodes may go.
 */
static void hold_done (const struct call *call, flux_future_t *f)
{
    struct job *job = jobs_find (call->ctx->jobs, call->jobid);
    bool ok;

    if (!job)
        return;
    ok = flux_future_get (f, NULL) == 0;
    job->held = job->held && ok;
    end (job, call, f, "hold", ok);
}

static int remove_epilog (struct job *job)
{
    flux_future_t *f;

    if (holds_needed (job))
        return call (job, DWS_ACT_EPILOG_REMOVE, holds_tell (job), hold_done);

    annotate_clear (job);
    f = flux_rpc_pack (job->ctx->h, "job-manager.dws.epilog-remove",
                       FLUX_NODEID_ANY, 0, "{s:I}",
                       "id", (json_int_t)job->facts->id);
    return call (job, DWS_ACT_EPILOG_REMOVE, f, call_done);
}

static int raise_exception (struct job *job, const struct dws_action *action)
{
    char label[JOB_LABEL_SIZE];
    char text[DWS_EXPLAIN_SIZE];
    flux_future_t *f;

    explain_text (job, action->text, text);
    flux_log (job->ctx->h, LOG_ERR, "%s: %s", job_label (job, label), text);
    f = flux_job_raise (job->ctx->h, job->facts->id, action->type,
                        action->severity, text);
    return call (job, DWS_ACT_RAISE, f, call_done);
}

/* The exception that nobody would hear any more.
 */
static int report (struct job *job, const struct dws_action *action)
{
    char buf[DWS_EXPLAIN_SIZE];
    const char *text = action->text;

    if (!job->wf->deleting)
        text = explain_text (job, text, buf);
    return call (job, DWS_ACT_REPORT, losses_report (job, text), call_done);
}

int actions_save (struct job *job, enum dws_state state, json_t *object)
{
    return call (job, DWS_ACT_SAVE,
                 kvs_save (job->ctx->commits, job->facts->id, job->wf, state,
                           object),
                 call_done);
}

/* The object is at hand if it is what has led to this decision. Otherwise it
 * has to be read.
 */
static int save (struct job *job, const struct dws_action *action)
{
    json_t *object = action->whole ? job->object : NULL;

    if (!job->wf)
        return 0;
    if (action->whole && !object
        && command_read_workflow (job, action->bit) < 0)
        return -1;
    if ((object || job->wf->elapsed)
        && actions_save (job, action->state, object) < 0)
        return -1;
    job->facts->saved |= action->bit;
    return 0;
}

/* Without an eventlog (the job was purged) nothing is known about its end.
 */
static void recall_done (const struct call *call, flux_future_t *f)
{
    struct job *job = jobs_find (call->ctx->jobs, call->jobid);
    const char *eventlog = NULL;
    bool ok;

    if (!job)
        return;
    ok = flux_kvs_lookup_get (f, &eventlog) == 0 || errno == ENOENT;
    if (ok)
        dws_job_recall (job->facts, eventlog);
    end (job, call, f, "eventlog", ok);
}

static int run (struct job *job, const struct dws_action *action)
{
    switch (action->kind) {
        case DWS_ACT_RESOURCE_UPDATE:
            return update_resources (job);
        case DWS_ACT_REJECT:
            return reject (job, action);
        case DWS_ACT_HOSTS:
            return call (job, action->kind,
                         kvs_lookup_job (job->ctx->h, job->facts->id, "R"),
                         hosts_done);
        case DWS_ACT_RECALL:
            return call (job, action->kind,
                         kvs_lookup_job (job->ctx->h, job->facts->id,
                                         "eventlog"),
                         recall_done);
        case DWS_ACT_PROLOG_REMOVE:
            return remove_prolog (job);
        case DWS_ACT_EPILOG_REMOVE:
            return remove_epilog (job);
        case DWS_ACT_RAISE:
            return raise_exception (job, action);
        case DWS_ACT_REPORT:
            return report (job, action);
        case DWS_ACT_SAVE:
            return save (job, action);
        case DWS_ACT_NOTIFY:
        case DWS_ACT_DRAIN:
            return failures_run (job, action);
        default:
            return command_run (job, action);
    }
}

void actions_run (struct job *job, const struct dws_actions *actions)
{
    for (size_t i = 0; i < actions->count; i++) {
        const struct dws_action *action = &actions->list[i];

        /* What comes after it may destroy what there is to find out. */
        if ((action->kind == DWS_ACT_RAISE || action->kind == DWS_ACT_REPORT)
            && !explain_ready (job))
            return;
        if (run (job, action) < 0) {
            if (errno != EAGAIN)
                trouble_log (job, action->kind, errno, strerror (errno));
            job_begin (job, action->kind);
            job_end (job, action->kind, false);
        }
    }
}

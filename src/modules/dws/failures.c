/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See failures.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "libdws/health.h"
#include "libdws/mounts.h"
#include "libdws/movements.h"
#include "agent.h"
#include "calls.h"
#include "config.h"
#include "failures.h"
#include "health.h"
#include "kvs.h"
#include "objects.h"
#include "trouble.h"

/* What a DWS_ACT_MOVEMENTS command asks for.
 */
enum {
    LIST_MOVEMENTS,
    LIST_LOGS,
};

static int list (struct job *job, enum dws_action_kind kind,
                 const char *plural)
{
    return agent_send (job->ctx->agent, job, kind, 0,
                       command_list (job->wf, plural));
}

static int set_lagging (struct job *job, const char *hosts, bool shared)
{
    char label[JOB_LABEL_SIZE];
    dws_error_t error;

    if (dws_workflow_set_lagging (job->wf, hosts, shared, &error) < 0) {
        flux_log (job->ctx->h, LOG_ERR, "%s: %s", job_label (job, label),
                  error.text);
        return -1;
    }
    if (*hosts)
        flux_log (job->ctx->h, LOG_ERR, "%s: behind in %s: %s",
                  job_label (job, label), dws_state_name (job->wf->state),
                  hosts);
    return 0;
}

/* What is in the way of a job's start is a mount that is missing, afterwards
 * it is one that is there: also if PreRun was never left.
 */
static bool is_mounting (const struct job *job)
{
    return job->facts->phase <= DWS_PHASE_PROLOG;
}

static void mounts_listed (struct job *job, json_t *objects)
{
    bool mounting = is_mounting (job);
    dws_error_t error;
    char *hosts;

    if ((hosts = dws_mounts_lagging (objects,
                                     mounting ? "mounted" : "unmounted",
                                     &error)))
        set_lagging (job, hosts, false);
    else
        flux_log (job->ctx->h, LOG_ERR, "mounts: %s", error.text);
    free (hosts);
}

static void servers_listed (struct job *job, json_t *objects)
{
    struct dws_workflow *wf = job->wf;
    bool shared;
    dws_error_t error;
    char *s;

    if ((s = dws_servers_allocated (objects, &error))) {
        free (wf->allocated);
        wf->allocated = s;
    }
    if (wf->state == DWS_STATE_SETUP && job->facts->hosts
        && (s = dws_servers_lagging (objects, job->facts->hosts,
                                     job->ctx->config->topology,
                                     &shared, &error))) {
        set_lagging (job, s, shared);
        free (s);
    }
}

static void recorded (const struct call *call, flux_future_t *f)
{
    if (flux_future_get (f, NULL) < 0)
        flux_log (call->ctx->h, LOG_ERR, "movements and containers: %s",
                  future_strerror (f, errno));
}

static void movements_listed (struct job *job, json_t *objects)
{
    int max = job->ctx->config->policy.save_datamovements;

    if (json_array_size (objects) > 0
        && calls_add (job->ctx,
                      kvs_save_movements (job->ctx->commits, job->facts->id,
                                          objects, max),
                      job->facts->id, 0, recorded) < 0)
        flux_log_error (job->ctx->h, "rabbit_datamovements");
}

static void logs_read (struct job *job, json_t *logs)
{
    if (json_array_size (logs) > 0
        && calls_add (job->ctx,
                      kvs_save_logs (job->ctx->commits, job->facts->id, logs),
                      job->facts->id, 0, recorded) < 0)
        flux_log_error (job->ctx->h, "rabbit_container_log");
}

/* Without the list there is nobody to blame: the job gets the outcome that it
 * has when none lags, and is not kept waiting.
 */
void failures_listed (struct job *job, enum dws_action_kind kind, int index,
                      json_t *objects)
{
    json_t *none = NULL;

    if (!objects && !(objects = none = json_array ()))
        return;
    if (kind == DWS_ACT_MOUNTS)
        mounts_listed (job, objects);
    else if (kind == DWS_ACT_MOVEMENTS && index == LIST_LOGS)
        logs_read (job, objects);
    else if (kind == DWS_ACT_MOVEMENTS)
        movements_listed (job, objects);
    else if (kind == DWS_ACT_PROGRESS)
        dws_workflow_set_progress (job->wf, dws_movements_progress (objects),
                                   flux_reactor_time ());
    else
        servers_listed (job, objects);
    json_decref (none);
}

static int exclude (struct job *job)
{
    struct dws_workflow *wf = job->wf;
    dws_error_t error;
    json_t *patch;
    char *hosts;

    if (!(hosts = dws_hosts_subtract (job->facts->hosts, wf->lagging, &error)))
        return -1;
    patch = object_computes (hosts, job->ctx->config->topology);
    free (hosts);
    return agent_send (job->ctx->agent, job, DWS_ACT_EXCLUDE, 0,
                       command_create_with ("patch", "computes",
                                            wf->computes_namespace,
                                            wf->computes,
                                            "patch", patch));
}

static int force_ready (struct job *job)
{
    struct dws_workflow *wf = job->wf;
    json_t *patch = json_pack ("{s:{s:{s:s}} s:{s:b}}",
                               "metadata",
                                 "annotations",
                                   DWS_FAILED_ANNOTATION, wf->lagging,
                               "spec",
                                 "forceReady", 1);

    return agent_send (job->ctx->agent, job, DWS_ACT_FORCE_READY, 0,
                       command_create_with ("patch", "workflows",
                                            wf->namespace, wf->name,
                                            "patch", patch));
}

/* Neither of these is worth trying for ever: a node may not be a node of this
 * instance, a job may have ended.
 */
static void told (const struct call *call, flux_future_t *f)
{
    struct job *job = jobs_find (call->ctx->jobs, call->jobid);

    if (!job)
        return;
    if (flux_future_get (f, NULL) < 0)
        trouble_log (job, call->kind, errno, future_strerror (f, errno));
    job_end (job, call->kind, true);
}

static int tell (struct job *job, enum dws_action_kind kind, flux_future_t *f)
{
    if (calls_add (job->ctx, f, job->facts->id, kind, told) < 0)
        return -1;
    job_begin (job, kind);
    return 0;
}

static int drain (struct job *job)
{
    struct dws_workflow *wf = job->wf;
    char reason[256];
    flux_future_t *f;

    snprintf (reason, sizeof (reason), "%s in %s of %s",
              wf->desired <= DWS_STATE_SETUP ? "rabbit: no file system"
              : is_mounting (job) ? "rabbit: failed to mount"
                                  : DWS_DRAIN_UNMOUNT,
              dws_state_name (wf->state), wf->name);
    f = flux_rpc_pack (job->ctx->h, "resource.drain", 0, 0, "{s:s s:s s:s}",
                       "targets", wf->lagging,
                       "mode", "update",
                       "reason", reason);
    if (tell (job, DWS_ACT_DRAIN, f) < 0)
        return -1;
    wf->drained = true;
    if (!is_mounting (job))
        health_stuck (job->ctx->health, wf->lagging);
    return 0;
}

static int disable (struct job *job)
{
    struct dws_workflow *wf = job->wf;
    struct hostlist *hl;
    const char *rabbit;
    char reason[256];
    int index = 0;
    int rc = 0;

    snprintf (reason, sizeof (reason),
              "workflow %s timed out and still has an allocation here",
              wf->name);
    if (!(hl = hostlist_decode (wf->allocated)))
        return -1;
    for (rabbit = hostlist_first (hl); rabbit && rc == 0;
         rabbit = hostlist_next (hl))
        rc = agent_send (job->ctx->agent, job, DWS_ACT_DISABLE, index++,
                         command_create_with ("patch", "storages",
                                              DWS_NAMESPACE, rabbit, "patch",
                                              object_disabled (reason)));
    {
        int saved_errno = errno;
        hostlist_destroy (hl);
        errno = saved_errno;
    }
    return rc;
}

static int record (struct job *job)
{
    const struct dws_policy *policy = &job->ctx->config->policy;

    if (policy->save_datamovements > 0
        && agent_send (job->ctx->agent, job, DWS_ACT_MOVEMENTS,
                       LIST_MOVEMENTS,
                       command_list (job->wf, "nnfdatamovements")) < 0)
        return -1;
    if (job->wf->containers && policy->container_log_bytes > 0
        && agent_send (job->ctx->agent, job, DWS_ACT_MOVEMENTS, LIST_LOGS,
                       command_logs (job->wf, policy->container_log_bytes)) < 0)
        return -1;
    return 0;
}

int failures_run (struct job *job, const struct dws_action *action)
{
    switch (action->kind) {
        case DWS_ACT_MOUNTS:
            return list (job, action->kind, "clientmounts");
        case DWS_ACT_ALLOCATIONS:
            return list (job, action->kind, "servers");
        case DWS_ACT_MOVEMENTS:
            return record (job);
        case DWS_ACT_PROGRESS:
            return list (job, action->kind, "nnfdatamovements");
        case DWS_ACT_EXCLUDE:
            return exclude (job);
        case DWS_ACT_FORCE_READY:
            return force_ready (job);
        case DWS_ACT_NOTIFY:
            return tell (job, action->kind,
                         flux_job_raise (job->ctx->h, job->facts->id,
                                         "dws-node-failure", 1,
                                         job->wf->lagging));
        case DWS_ACT_DRAIN:
            return drain (job);
        case DWS_ACT_DISABLE:
            return disable (job);
        default:
            errno = ENOSYS;
            return -1;
    }
}

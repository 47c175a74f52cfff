/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Handles nodes and rabbits that fail a job: finds them, lets the job go on
 * without them, drains them.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>

#include "libdws/facts/mounts.h"
#include "libdws/facts/servers.h"
#include "libdws/health/drained.h"
#include "libdws/health/health.h"
#include "libdws/storage/allocation.h"
#include "libdws/util/clean.h"
#include "libdws/util/hosts.h"
#include "libdws/util/jsonmake.h"
#include "libdws/util/jsontext.h"
#include "libdws/util/lists.h"
#include "libutil/drain.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "libutil/safelog.h"
#include "act/abort.h"
#include "act/action.h"
#include "act/failures.h"
#include "act/objects.h"
#include "act/storage.h"
#include "act/workflow.h"
#include "agent/commands.h"
#include "base/timeline.h"
#include "facts/config.h"
#include "facts/storages.h"
#include "health/health.h"

/* Which of them
 */

static int set_lagging (struct job *job, const char *hosts, bool shared)
{
    char label[JOB_LABEL_SIZE];
    dws_error_t error;

    if (dws_workflow_set_lagging (job->wf, hosts, shared, &error) < 0) {
        safe_log (job->ctx->h, LOG_ERR, "%s: %s", job_label (job, label),
                  error.text);
        return -1;
    }
    if (*hosts)
        safe_log (job->ctx->h, LOG_ERR, "%s: behind in %s: %s",
                  job_label (job, label), dws_state_name (job->wf->state),
                  hosts);
    return 0;
}

bool failures_leave_out (struct job *job)
{
    json_t *storages = storages_by_name (job->ctx->storages);
    dws_error_t error;
    char *hosts = storage_hosts (job);
    char *down = NULL;
    char *failed = NULL;
    size_t limit = job->facts->failure_tolerance;
    bool ok = false;

    if (job->facts->failure_tolerance > 0 && hosts
        && (down = dws_allocation_down (hosts, storages,
                                        job->ctx->config->topology, &error))
        && *down
        && (failed = dws_hosts_join (down, storage_left_out (job), &error))
        && dws_hosts_count (failed) <= limit
        && dws_hosts_count (down) < dws_hosts_count (hosts)
        && set_lagging (job, failed, false) == 0) {
        jobs_changed (job);
        ok = true;
    }
    free (failed);
    free (down);
    free (hosts);
    return ok;
}

/* Missing mounts delay the start of a job, remaining mounts its end. Go by the
 * job's phase: the workflow may never have left PreRun, or be torn down during
 * the prolog.
 */
static bool is_mounting (const struct job *job)
{
    return job->facts->phase <= DWS_PHASE_PROLOG
        && job->wf->desired <= DWS_STATE_PRERUN;
}

static void mounts_listed (struct job *job, int index, json_t *objects)
{
    struct dws_workflow *wf = job->wf;
    json_t *places = dws_mounts_places (objects);
    bool missing = is_mounting (job);
    dws_error_t error;
    char *hosts;

    wf->t_lag = timeline_now (job->ctx->timeline);
    wf->unmount = dws_mounts_unmount (objects, wf);
    (void)dws_jsontext_set (&wf->places, places);
    json_decref (places);
    /* Actions on nodes that lack mounts do not count for nodes that keep theirs, or the
     * other way round: start anew. */
    if (missing != wf->lag_missing)
        wf->lag_state = DWS_STATE_NONE;
    wf->lag_missing = missing;
    if (missing)
        hosts = dws_mounts_missing (objects, job->facts, job->wf,
                                    job->ctx->config->topology, &error);
    else
        hosts = dws_mounts_lagging (objects, "unmounted", &error);
    if (hosts)
        set_lagging (job, hosts, false);
    else
        safe_log (job->ctx->h, LOG_ERR, "mounts: %s", error.text);
    free (hosts);
}

static int run_mounts (struct job *job, const struct dws_action *wanted)
{
    return act_send (job, &action_mounts, 0,
                     command_list (job->wf, "clientmounts"));
}

const struct action action_mounts = {
    .kind = DWS_ACT_MOUNTS,
    .run = run_mounts,
    .listed = mounts_listed,
};

static void allocations_listed (struct job *job, int index, json_t *objects)
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

static int run_allocations (struct job *job, const struct dws_action *wanted)
{
    return act_send (job, &action_allocations, 0,
                     command_list (job->wf, "servers"));
}

const struct action action_allocations = {
    .kind = DWS_ACT_ALLOCATIONS,
    .run = run_allocations,
    .listed = allocations_listed,
};

/* Exclude the lagging nodes from Computes. Waived nodes are excluded when the others
 * are unmounted.
 */

static int run_exclude (struct job *job, const struct dws_action *wanted)
{
    struct dws_workflow *wf = job->wf;
    dws_error_t error;
    json_t *computes;
    json_t *failed;
    char *hosts;

    if (!(hosts = dws_hosts_subtract (job->facts->hosts, wf->lagging, &error)))
        return -1;
    computes = command_computes (wf, hosts, job->ctx->config->topology);
    free (hosts);
    failed = json_pack ("{s:{s:{s:s}}}",
                        "metadata",
                          "annotations",
                            DWS_FAILED_ANNOTATION, wf->lagging);
    if (act_send (job, &action_exclude, 0, command_patch (wf, failed)) < 0) {
        ERRNO_SAFE (json_decref (computes));
        return -1;
    }
    return act_send (job, &action_exclude, 1, computes);
}

static bool exclude_done (struct job *job)
{
    job->wf->excluded = true;
    return true;
}

const struct action action_exclude = {
    .kind = DWS_ACT_EXCLUDE,
    .run = run_exclude,
    .done = exclude_done,
};

/* In PreRun the nodes stay in Computes. The patch that sets forceReady also lists the
 * waived nodes, so that a restarted module knows both or neither.
 */
static json_t *note_waived (const struct dws_workflow *wf)
{
    dws_error_t error;
    char *waived;
    json_t *o;

    if (!(waived = dws_hosts_subtract (wf->lagging, wf->failed, &error)))
        return NULL;
    o = json_pack ("{s:{s:s s:s}}", "annotations",
                   DWS_FAILED_ANNOTATION, wf->lagging,
                   DWS_WAIVED_ANNOTATION, waived);
    free (waived);
    return o;
}

static int run_force_ready (struct job *job, const struct dws_action *wanted)
{
    struct dws_workflow *wf = job->wf;
    json_t *patch = json_pack ("{s:{s:b}}", "spec", "forceReady", 1);

    if (wf->state == DWS_STATE_PRERUN)
        dws_json_set (&patch, "metadata", note_waived (wf));
    return act_send (job, &action_force_ready, 0, command_patch (wf, patch));
}

const struct action action_force_ready = {
    .kind = DWS_ACT_FORCE_READY,
    .run = run_force_ready,
    .result = workflow_result,
};

/* Let others know
 */

static void notified_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = act_job (call);

    if (job && job->wf)
        job->wf->notified = true;
    act_tried_cb (call, f);
}

static int run_notify (struct job *job, const struct dws_action *wanted)
{
    char *hosts = dws_clean_copy (job->wf->lagging);
    int rc = -1;

    if (hosts)
        rc = act_call (job, &action_notify,
                       flux_job_raise (job->ctx->h, job->facts->id,
                                       DWS_EXCEPTION_NODE_FAILURE, 1, hosts),
                       notified_cb);
    ERRNO_SAFE (free (hosts));
    return rc;
}

const struct action action_notify = {
    .kind = DWS_ACT_NOTIFY,
    .run = run_notify,
};

#define DRAIN_REASON_SIZE 256

static void drain_reason (const struct job *job, char buf[DRAIN_REASON_SIZE])
{
    const struct dws_workflow *wf = job->wf;

    snprintf (buf, DRAIN_REASON_SIZE, "%s in %s of %s",
              wf->desired <= DWS_STATE_SETUP ? "rabbit: no file system"
              : is_mounting (job) ? "rabbit: failed to mount"
                                  : DWS_DRAIN_UNMOUNT,
              dws_state_name (wf->state), wf->name);
}

static flux_future_t *drain (const struct job *job, const char *targets,
                             const char *mode)
{
    char text[DRAIN_REASON_SIZE];
    char reason[DRAIN_REASON_SIZE];

    drain_reason (job, text);
    dws_clean (text, reason, sizeof (reason));
    return drain_nodes (job->ctx->h, targets, mode, reason);
}

static void note_drained (struct job *job)
{
    job->wf->drained = true;
    if (!is_mounting (job))
        health_stuck (job->ctx->health, job->wf->lagging);
}

/* For an abandoned job: returns true if the drain succeeded. Otherwise dws.abort fails,
 * and the plugin drains all nodes of the job. If the plugin has drained nodes before,
 * their reason says that they may be clean; overwrite that before DWS stops waiting for
 * these nodes, since after that no object tells which have mounts.
 */
static bool drained_well (struct job *job, const struct call *call,
                          flux_future_t *f, const char *what)
{
    bool ok = flux_future_get (f, NULL) == 0;

    if (ok && job->wf)
        return true;
    if (!ok)
        aborts_failed (job->ctx->aborts, job);
    act_end (job, call, f, what, ok);
    return false;
}

static void overwritten_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = act_job (call);

    if (!job || !drained_well (job, call, f, "resource.drain"))
        return;
    note_drained (job);
    act_end (job, call, f, "resource.drain", true);
}

static void maybe_reason (const struct job *job, char buf[128])
{
    char name[DWS_NAME_SIZE];

    snprintf (buf, 128, "%s %s", DWS_DRAIN_MAYBE,
              dws_workflow_name (job->facts->id, NULL, name));
}

/* Overwrite the reason of all lagging nodes, since the list may by now be that
 * of a later state.
 */
static bool overwrite (struct job *job, json_t *status)
{
    char reason[128];
    char *stay = NULL;
    char *clean = NULL;
    dws_error_t error;
    bool ok = true;

    if (!job->wf->lagging || job->wf->lag_state != job->wf->state)
        return true;
    maybe_reason (job, reason);
    if (dws_drained_for (status, reason, job->wf->lagging, &stay, &clean,
                         &error) < 0)
        return false;
    if (!*stay)
        note_drained (job);
    else
        ok = act_call (job, &action_drain, drain (job, stay, "overwrite"),
                       overwritten_cb) == 0;
    ERRNO_SAFE (free (stay));
    ERRNO_SAFE (free (clean));
    return ok;
}

static void reasons_read_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = act_job (call);
    json_t *status;

    if (!job || !drained_well (job, call, f, "resource.status"))
        return;
    act_end (job, call, f, "resource.status",
             flux_rpc_get_unpack (f, "o", &status) == 0
             && overwrite (job, status));
}

static void drained_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = act_job (call);

    if (!job || !drained_well (job, call, f, "resource.drain"))
        return;
    act_end (job, call, f, "resource.drain",
             act_call (job, &action_drain,
                       flux_rpc (job->ctx->h, "resource.status", NULL, 0, 0),
                       reasons_read_cb) == 0);
}

static int run_drain (struct job *job, const struct dws_action *wanted)
{
    bool abandoned = job->facts->abandoned;

    if (act_call (job, &action_drain, drain (job, job->wf->lagging, "update"),
                  abandoned ? drained_cb : act_tried_cb) < 0)
        return -1;
    if (!abandoned)
        note_drained (job);
    return 0;
}

const struct action action_drain = {
    .kind = DWS_ACT_DRAIN,
    .run = run_drain,
};

/* The drain reason of nodes that must be unmounted before other jobs get them: nodes of
 * a job that ended without an epilog, and waived nodes.
 */

static void mounted_reason (const struct job *job, char buf[128])
{
    snprintf (buf, 128, "%s %s", DWS_DRAIN_MOUNTED, job->wf->name);
}

static int run_keep_nodes (struct job *job, const struct dws_action *wanted)
{
    const struct dws_workflow *wf = job->wf;
    bool waived = wf->waived && !job->facts->stranded;
    const char *hosts = waived ? wf->waived : wf->lagging;
    char label[JOB_LABEL_SIZE];
    char reason[128];

    mounted_reason (job, reason);
    safe_log (job->ctx->h, LOG_ERR, "%s: drain %s: still mounted, and %s",
              job_label (job, label), hosts,
              waived ? "not waited for"
                     : "the job has ended without an epilog");
    if (act_call (job, &action_keep_nodes,
                  drain_nodes (job->ctx->h, hosts, "update", reason),
                  act_tried_cb) < 0)
        return -1;
    job->wf->kept = true;
    return 0;
}

const struct action action_keep_nodes = {
    .kind = DWS_ACT_KEEP_NODES,
    .run = run_keep_nodes,
};

static void undrained_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = act_job (call);

    if (job && job->wf)
        job->wf->undrained = true;
    act_tried_cb (call, f);
}

/* Undrain the nodes that were drained for this job and have no mounts. Nodes drained
 * for another reason stay drained, as do nodes of an abandoned job that could not be
 * unmounted or are not unmounted yet.
 */
static bool undrain (struct job *job, json_t *status)
{
    const struct dws_workflow *wf = job->wf;
    const char *mounted = "";
    char reason[128];
    char *stay;
    char *clean;
    dws_error_t error;
    bool ok = true;

    if (!job->facts->abandoned)
        mounted_reason (job, reason);
    else if (dws_nodes_secured (job->facts, wf) && dws_rabbits_secured (wf)) {
        maybe_reason (job, reason);
        if (!job_torn_down (job) && wf->state >= DWS_STATE_PRERUN
            && wf->lagging_count > 0)
            mounted = wf->lagging;
    }
    else
        return true;    // DWS has advanced: read the state first
    if (dws_drained_for (status, reason, mounted, &stay, &clean, &error) < 0)
        return false;
    if (!*clean)
        job->wf->undrained = true;
    else
        ok = act_call (job, &action_undrain,
                       flux_rpc_pack (job->ctx->h, "resource.undrain", 0, 0,
                                      "{s:s}", "targets", clean),
                       undrained_cb) == 0;
    ERRNO_SAFE (free (stay));
    ERRNO_SAFE (free (clean));
    return ok;
}

static void drains_read_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = act_job (call);
    json_t *status;
    bool ok;

    if (!job)
        return;
    ok = flux_rpc_get_unpack (f, "o", &status) == 0
        && (!job->wf || undrain (job, status));
    act_end (job, call, f, "resource.status", ok);
}

static int run_undrain (struct job *job, const struct dws_action *wanted)
{
    return act_call (job, &action_undrain,
                     flux_rpc (job->ctx->h, "resource.status", NULL, 0, 0),
                     drains_read_cb);
}

const struct action action_undrain = {
    .kind = DWS_ACT_UNDRAIN,
    .run = run_undrain,
};

/* Rabbits
 */

static int run_disable (struct job *job, const struct dws_action *wanted)
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
    if (!(hl = dws_hostlist_decode (wf->allocated)))
        return -1;
    for (rabbit = hostlist_first (hl); rabbit && rc == 0;
         rabbit = hostlist_next (hl))
        rc = act_send (job, &action_disable, index++,
                       command_create_with ("patch", "storages",
                                            DWS_NAMESPACE, rabbit, "patch",
                                            object_disabled (reason, NULL)));
    ERRNO_SAFE (hostlist_destroy (hl));
    return rc;
}

static bool disable_done (struct job *job)
{
    job->wf->disabled = true;
    return true;
}

const struct action action_disable = {
    .kind = DWS_ACT_DISABLE,
    .run = run_disable,
    .done = disable_done,
};

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Admits a job to the queue or rejects it: reads the demands of its directives
 * from Kubernetes and writes them into the jobspec.
 */

#include <errno.h>

#include "libdws/storage/location.h"
#include "libdws/storage/resources.h"
#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"
#include "libutil/safelog.h"
#include "act/action.h"
#include "act/writeback.h"
#include "act/data_first.h"
#include "act/kvs.h"
#include "act/limits.h"
#include "act/constraint.h"
#include "act/storage.h"
#include "agent/agent.h"
#include "agent/commands.h"
#include "sched/scheduler.h"
#include "tell/explain.h"

/* Breakdowns
 */

/* Read one object that the job's demands depend on.
 */
static int read_object (struct job *job, size_t index, const char *kind,
                        json_t *ref)
{
    const char *name = NULL;
    const char *namespace = job->wf->namespace;

    if (json_unpack (ref, "{s:s s?s}", "name", &name,
                     "namespace", &namespace) < 0) {
        errno = EPROTO;
        return -1;
    }
    return act_send (job, &action_breakdowns, index,
                     command_create ("get", kind, namespace, name));
}

/* Read the Servers of the storage that the job's nodes must be next to, as the
 * breakdowns name them; the indices of these commands follow those of the breakdowns. A
 * job that has its nodes needs no Servers. A data-first job needs its own, which may
 * have been written before this start of the module.
 */
static int read_servers (struct job *job,
                         const struct dws_breakdowns *breakdowns)
{
    struct act_job *own = act_own (job);
    size_t count = json_array_size (own->breakdowns);
    json_t *refs;
    json_t *ref;
    size_t index;
    int rc = -1;

    if (job->facts->phase != DWS_PHASE_DEPEND)
        refs = json_array ();
    else if (dws_is_data_first (job->facts, job->wf))
        refs = dws_location_own (breakdowns);
    else
        refs = dws_location_servers (breakdowns);
    if (!refs || !(own->servers = json_array ()))
        goto done;
    json_array_foreach (refs, index, ref) {
        if (json_array_append_new (own->servers, json_null ()) < 0
            || read_object (job, count + index, "servers", ref) < 0)
            goto done;
    }
    rc = 0;
done:
    ERRNO_SAFE (json_decref (refs));
    return rc;
}

static int run_breakdowns (struct job *job, const struct dws_action *wanted)
{
    struct act_job *own = act_own (job);
    json_t *refs;
    json_t *ref;
    size_t index;
    int rc = -1;

    json_decref (own->servers);
    own->servers = NULL;
    json_decref (own->breakdowns);
    own->breakdowns = NULL;
    if (!(refs = dws_jsontext_get (job->wf->breakdown_refs))
        || !(own->breakdowns = json_array ()))
        goto done;
    json_array_foreach (refs, index, ref) {
        if (json_array_append_new (own->breakdowns, json_null ()) < 0
            || read_object (job, index, "directivebreakdowns", ref) < 0)
            goto done;
    }
    rc = 0;
done:
    ERRNO_SAFE (json_decref (refs));
    return rc;
}

/* Note the object of command 'index': breakdowns have the first indices,
 * Servers those after them.
 */
static void note_read (struct job *job, size_t index, json_t *object)
{
    struct act_job *own = act_own (job);
    size_t count = json_array_size (own->breakdowns);
    json_t *list = own->breakdowns;

    if (index >= count) {
        list = own->servers;
        index -= count;
    }
    if (list && json_array_set (list, index, object) < 0)
        safe_log (job->ctx->h, LOG_ERR, "breakdown: out of memory");
}

/* Note a missing Servers object as an empty one, so that libdws reports it to
 * the user.
 */
static bool note_missing (struct job *job, size_t index, int status)
{
    const struct act_job *own = act_own (job);
    json_t *nothing;

    if (status != 404 || index < json_array_size (own->breakdowns)
        || !(nothing = json_object ()))
        return false;
    note_read (job, index, nothing);
    json_decref (nothing);
    return true;
}

static bool breakdowns_result (struct job *job, const struct result *result)
{
    if (!result->current)
        return result->ok;
    if (!result->ok)
        return note_missing (job, result->index, result->status);
    note_read (job, result->index, result->object);
    return true;
}

static bool all_read (json_t *objects)
{
    json_t *entry;
    size_t index;

    json_array_foreach (objects, index, entry) {
        if (!json_is_object (entry))
            return false;
    }
    return true;
}

/* After the last breakdown, read the Servers to which the breakdowns refer, if any.
 */
static int take_breakdowns (struct job *job)
{
    struct act_job *own = act_own (job);
    struct dws_breakdowns *breakdowns;
    dws_error_t error;
    int rc;

    if (!(breakdowns = dws_breakdowns_create (own->breakdowns, &error))) {
        if (errno == EINVAL)
            act_refuse (job, error.text);
        return -1;
    }
    if (!own->servers) {
        if ((rc = read_servers (job, breakdowns)) < 0
            || json_array_size (own->servers) > 0)
            goto done;
    }
    dws_breakdowns_destroy (job->wf->breakdowns);
    job->wf->breakdowns = breakdowns;
    json_decref (own->breakdowns);
    own->breakdowns = NULL;
    return 0;
done:
    dws_breakdowns_destroy (breakdowns);
    return rc;
}

/* Breakdowns that are not ready are read once more.
 */
static bool breakdowns_done (struct job *job)
{
    const struct act_job *own = act_own (job);

    if (!all_read (own->breakdowns) || !all_read (own->servers)
        || json_array_size (own->breakdowns) == 0)
        return true;
    if (take_breakdowns (job) < 0) {
        if (errno != EAGAIN && !job->facts->refusal)
            safe_log_error (job->ctx->h, "breakdowns");
        return false;
    }
    return true;
}

const struct action action_breakdowns = {
    .kind = DWS_ACT_BREAKDOWNS,
    .run = run_breakdowns,
    .result = breakdowns_result,
    .done = breakdowns_done,
};

/* The job manager
 */

static int send_resources (struct job *job, const struct demand *demand)
{
    struct act_job *own = act_own (job);
    flux_future_t *f;
    json_t *first = NULL;

    writeback_send_memos (job);
    if (own->offering != DWS_FIRST_UNSAID)
        first = json_boolean (own->offering == DWS_FIRST_YES);
    f = calls_rpc (job->ctx->h, "job-manager.dws.resource-update",
                   "{s:I s:O s:O s:o*}",
                   "id", (json_int_t)job->facts->id,
                   "resources", demand->resources,
                   "exclude", demand->constraint,
                   "first", first);
    return act_call (job, &action_resource_update, f, act_done_cb);
}

/* The record of daemons is written, so the prolog will find it: let the job go
 * on.
 */
static void daemons_saved_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = act_job (call);
    bool saved;

    if (!job)
        return;
    saved = flux_future_get (f, NULL) == 0;
    act_own (job)->daemons_saved = saved;
    act_end (job, call, f, "daemons", saved);
}

/* The workflow is made anew: the job's storage and data then are next to nodes that it
 * may have.
 */
static int make_anew (struct job *job)
{
    char label[JOB_LABEL_SIZE];

    safe_log (job->ctx->h, LOG_INFO, "%s: its workflow is made anew, as it may not"
              " have enough nodes next to its storage any more",
              job_label (job, label));
    job->wf->spoilt = true;
    jobs_changed (job);
    return 0;
}

static int run_resource_update (struct job *job,
                                const struct dws_action *wanted)
{
    struct act_job *own = act_own (job);
    struct demand demand;
    dws_error_t error;
    int rc;

    if (wanted->data_first == DWS_FIRST_YES && !data_first_in_reach (job))
        return make_anew (job);
    own->offering = wanted->data_first;
    if (limits_check (job, &error) < 0)
        return act_refuse (job, error.text);
    if (storage_demand (job, wanted->data_first == DWS_FIRST_YES, &demand,
                        &error) < 0)
        return errno == EINVAL || errno == ENOSPC ? act_refuse (job, error.text)
                                                  : -1;
    if (dws_resources_has_ssd (demand.resources)
        && scheduler_lacks_rabbits (job->ctx->scheduler))
        rc = act_refuse (job, "Fluxion has no rabbits in its resource graph");
    else if (json_array_size (demand.units) > 0 && !own->daemons_saved)
        rc = act_call (job, &action_resource_update,
                       kvs_save_daemons (job, demand.units),
                       daemons_saved_cb);
    else
        rc = send_resources (job, &demand);
    demand_clear (&demand);
    return rc;
}

static bool resource_update_done (struct job *job)
{
    struct act_job *own = act_own (job);

    if (own->offering != DWS_FIRST_UNSAID
        && job->facts->data_first != DWS_FIRST_NO)
        job->facts->data_first = own->offering;
    dws_job_advance (job->facts, DWS_PHASE_PENDING);
    json_decref (own->servers);
    own->servers = NULL;
    return true;
}

static bool resource_update_ready (struct job *job)
{
    return limits_ready (job) && constraint_ready (job) && data_first_ready (job);
}

const struct action action_resource_update = {
    .kind = DWS_ACT_RESOURCE_UPDATE,
    .ready = resource_update_ready,
    .run = run_resource_update,
    .done = resource_update_done,
};

static int run_reject (struct job *job, const struct dws_action *wanted)
{
    json_t *resources;
    char text[DWS_EXPLAIN_SIZE];
    flux_future_t *f;

    if (!(resources = dws_jsontext_get (job->facts->resources)))
        return -1;
    f = calls_rpc (job->ctx->h, "job-manager.dws.resource-update",
                   "{s:I s:o s:n s:s}",
                   "id", (json_int_t)job->facts->id,
                   "resources", resources,
                   "exclude",
                   "errmsg", explain_text (job, wanted->text, text));
    return act_call (job, &action_reject, f, act_done_cb);
}

static bool reject_done (struct job *job)
{
    job->facts->exception = true;
    job->facts->raised = true;
    return true;
}

const struct action action_reject = {
    .kind = DWS_ACT_REJECT,
    .run = run_reject,
    .done = reject_done,
};

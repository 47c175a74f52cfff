/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See commands.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/allocation.h"
#include "libdws/jsontext.h"
#include "libdws/location.h"
#include "actions.h"
#include "annotate.h"
#include "commands.h"
#include "config.h"
#include "failures.h"
#include "groups.h"
#include "objects.h"
#include "persistent.h"
#include "space.h"
#include "storage.h"
#include "trouble.h"
#include "usage.h"

/* Sending
 */

static int create (struct job *job)
{
    dws_error_t error;
    char name[DWS_NAME_SIZE];
    json_t *object;
    gid_t gid;

    /* A job that was submitted while this module was away has not been asked
     * before. */
    if (persistent_permitted (job->ctx, job->facts, &error) < 0) {
        if (errno == ENOMEM)
            return -1;
        actions_refuse (job, error.text);
        return 0;
    }
    /* What is not known now may be there all the same. */
    if (agent_link (job->ctx->agent) == DWS_LINK_UP
        && persistent_check (job->ctx->persistent, job, &error) < 0) {
        actions_refuse (job, error.text);
        return 0;
    }
    if (groups_find (job->ctx->groups, flux_reactor_time (),
                     job->facts->userid, job->facts->group, &gid,
                     &error) < 0) {
        if (errno == ENOENT || errno == EPERM) {
            actions_refuse (job, error.text);
            return 0;
        }
        return -1;
    }
    if (!(object = object_workflow (job->facts, job_workflow (job, name), gid,
                                    job->ctx->instance, &error)))
        return -1;
    return agent_send (job->ctx->agent, job, DWS_ACT_CREATE, 0,
                       command_create_with ("create", "workflows",
                                            DWS_NAMESPACE,
                                            job_workflow (job, name),
                                            "object", object));
}

/* Read one object among those that tell what the job needs.
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
    return agent_send (job->ctx->agent, job, DWS_ACT_BREAKDOWNS, index,
                       command_create ("get", kind, namespace, name));
}

/* The Servers that hold the storage which the nodes must be next to are
 * known once the breakdowns are, and counted on from them. They are needed
 * only until the job has its nodes.
 */
static int read_servers (struct job *job)
{
    size_t count = json_array_size (job->breakdowns);
    json_t *refs;
    json_t *ref;
    size_t index;
    dws_error_t error;
    int rc = -1;

    if (job->facts->phase != DWS_PHASE_DEPEND)
        refs = json_array ();
    else if (!(refs = dws_location_servers (job->breakdowns, &error))
             && errno == EINVAL) {
        actions_refuse (job, error.text);
        return 0;
    }
    if (!refs || !(job->servers = json_array ()))
        goto done;
    json_array_foreach (refs, index, ref) {
        if (json_array_append_new (job->servers, json_null ()) < 0
            || read_object (job, count + index, "servers", ref) < 0)
            goto done;
    }
    rc = 0;
done:
    {
        int saved_errno = errno;
        json_decref (refs);
        errno = saved_errno;
    }
    return rc;
}

static int read_breakdowns (struct job *job)
{
    json_t *refs;
    json_t *ref;
    size_t index;
    int rc = -1;

    json_decref (job->servers);
    job->servers = NULL;
    json_decref (job->breakdowns);
    job->breakdowns = NULL;
    if (!(refs = dws_jsontext_get (job->wf->breakdown_refs))
        || !(job->breakdowns = json_array ()))
        goto done;
    json_array_foreach (refs, index, ref) {
        if (json_array_append_new (job->breakdowns, json_null ()) < 0
            || read_object (job, index, "directivebreakdowns", ref) < 0)
            goto done;
    }
    rc = 0;
done:
    {
        int saved_errno = errno;
        json_decref (refs);
        errno = saved_errno;
    }
    return rc;
}

int command_read_workflow (struct job *job, uint32_t bit)
{
    if (agent_send (job->ctx->agent, job, DWS_ACT_SAVE, bit,
                    command_create ("get", "workflows", job->wf->namespace,
                                    job->wf->name)) < 0)
        return -1;
    job->reads++;
    job->reading |= bit;
    return 0;
}

static int send_servers (struct job *job, json_t *sets)
{
    json_t *entry;
    size_t index;

    json_array_foreach (sets, index, entry) {
        const char *name;
        const char *namespace = DWS_NAMESPACE;
        json_t *list;

        if (json_unpack (entry, "{s:{s:s s?s} s:o}",
                         "servers", "name", &name, "namespace", &namespace,
                         "allocationSets", &list) < 0) {
            errno = EPROTO;
            return -1;
        }
        list = json_pack ("{s:{s:O}}", "spec", "allocationSets", list);
        if (agent_send (job->ctx->agent, job, DWS_ACT_SERVERS, index,
                        command_create_with ("patch", "servers", namespace,
                                             name, "patch", list)) < 0)
            return -1;
    }
    return 0;
}

/* A rabbit that is not in order now may be in a moment: as long as that may
 * take, the job waits for it. After a restart of the module that counts anew.
 */
static bool rabbit_may_return (struct job *job)
{
    double now = flux_reactor_time ();

    if (job->t_down == 0.)
        job->t_down = now;
    return now - job->t_down < job->ctx->config->policy.tc_timeout;
}

static int write_servers (struct job *job)
{
    dws_error_t error = { "" };
    json_t *nodes = NULL;
    json_t *sets = NULL;
    char *rabbits;
    int rc = -1;

    if (!job->wf->breakdowns) {     // none of the directives has storage
        job->wf->servers_written = true;
        jobs_changed (job);
        return 0;
    }
    if (!usage_known (job->ctx)) {
        errno = EAGAIN;
        return -1;
    }
    jobs_forget_space (job);
    if (!(sets = storage_layout (job, &nodes, &error))) {
        if (errno == EHOSTDOWN && rabbit_may_return (job)) {
            errno = EAGAIN;
        }
        else if (errno == EINVAL || errno == ENOSPC || errno == EHOSTDOWN) {
            actions_refuse (job, error.text);
            rc = 0;
        }
        else if (errno == EAGAIN) {
            dws_jsontext_set (&job->wf->breakdowns, NULL);
        }
        goto done;
    }
    job->t_down = 0.;
    if ((job->space = space_of (sets)))
        space_take (job->ctx->used, job->space);
    if ((rabbits = dws_allocation_rabbits (nodes, &error))) {
        annotate_memo (job, "rabbits", rabbits, false);
        free (rabbits);
    }
    if (json_array_size (sets) == 0) {
        job->wf->servers_written = true;
        jobs_changed (job);
        rc = 0;
    }
    else
        rc = send_servers (job, sets);
done:
    {
        int saved_errno = errno;
        json_decref (nodes);
        json_decref (sets);
        errno = saved_errno;
    }
    return rc;
}

static int write_computes (struct job *job)
{
    json_t *patch = object_computes (job->facts->hosts,
                                     job->ctx->config->topology);

    return agent_send (job->ctx->agent, job, DWS_ACT_COMPUTES, 0,
                       command_create_with ("patch", "computes",
                                            job->wf->computes_namespace,
                                            job->wf->computes,
                                            "patch", patch));
}

static int desire (struct job *job, enum dws_action_kind kind,
                   enum dws_state state)
{
    json_t *patch = json_pack ("{s:{s:s}}", "spec",
                               "desiredState", dws_state_name (state));

    return agent_send (job->ctx->agent, job, kind, 0,
                       command_create_with ("patch", "workflows",
                                            job->wf->namespace,
                                            job->wf->name,
                                            "patch", patch));
}

static int drop_finalizer (struct job *job)
{
    return agent_send (job->ctx->agent, job, DWS_ACT_FINALIZER, 0,
                       command_create_with ("drop-finalizer", "workflows",
                                            job->wf->namespace,
                                            job->wf->name,
                                            "finalizer",
                                            json_string (DWS_FINALIZER)));
}

int command_run (struct job *job, const struct dws_action *action)
{
    if (!agent_ready (job->ctx->agent)) {
        errno = EAGAIN;
        return -1;
    }
    switch (action->kind) {
        case DWS_ACT_CREATE:
            return create (job);
        case DWS_ACT_BREAKDOWNS:
            return read_breakdowns (job);
        case DWS_ACT_SERVERS:
            return write_servers (job);
        case DWS_ACT_COMPUTES:
            return write_computes (job);
        case DWS_ACT_DESIRE:
            return desire (job, action->kind, action->state);
        case DWS_ACT_TEARDOWN:
            return desire (job, action->kind, DWS_STATE_TEARDOWN);
        case DWS_ACT_FINALIZER:
            return drop_finalizer (job);
        case DWS_ACT_DELETE:
            return agent_send (job->ctx->agent, job, action->kind, 0,
                               command_create ("delete", "workflows",
                                               job->wf->namespace,
                                               job->wf->name));
        default:
            return failures_run (job, action);
    }
}

/* Results
 */

/* The webhook and the schema refuse what the user wrote. Any other refusal
 * (permissions, a missing rule set) is for the admin to mend.
 */
static bool is_users_fault (int status, const char *message)
{
    return status == 422 || status == 400
        || (status == 403 && strstr (message, "admission webhook") != NULL);
}

static bool is_ours (struct dws_ctx *ctx, json_t *object)
{
    struct dws_workflow *wf = dws_workflow_decode (object, ctx->instance,
                                                   NULL);
    bool ours = wf && wf->ours;

    dws_workflow_destroy (wf);
    return ours;
}

/* Job ids count from the start of the instance: those of two young ones on a
 * cluster meet. Our workflows are found by their label.
 */
static bool take_other_name (struct job *job)
{
    char label[JOB_LABEL_SIZE];
    char name[DWS_NAME_SIZE];
    dws_error_t error;

    if (job->taken) {
        dws_error (&error, EEXIST, "workflow %s belongs to another Flux "
                   "instance", job_workflow (job, name));
        actions_refuse (job, error.text);
        return true;
    }
    flux_log (job->ctx->h, LOG_INFO, "%s: the name is another instance's",
              job_label (job, label));
    job->taken = true;
    return true;
}

static bool created (struct job *job, bool ok, int status,
                     const char *message, json_t *object)
{
    char name[DWS_NAME_SIZE];

    if (!ok && status == 409 && object) {
        if (!is_ours (job->ctx, object))
            return take_other_name (job);
        ok = true;
    }
    if (!ok && is_users_fault (status, message)) {
        actions_refuse (job, message);
        return true;
    }
    if (ok) {
        jobs_learn_workflow (job->ctx->jobs, object, false);
        annotate_memo (job, "rabbit_workflow", job_workflow (job, name),
                       false);
    }
    return ok;
}

/* What libdws looks at in a breakdown, which is kept.
 */
static json_t *part_of_breakdown (json_t *object)
{
    const char *name = "";

    (void)json_unpack (object, "{s:{s:s}}", "metadata", "name", &name);
    return json_pack ("{s:{s:s} s:O*}",
                      "metadata", "name", name,
                      "status", json_object_get (object, "status"));
}

/* Breakdowns come first, Servers after them.
 */
static void note_read (struct job *job, size_t index, json_t *object)
{
    size_t count = json_array_size (job->breakdowns);
    json_t *list = job->breakdowns;

    if (index >= count) {
        list = job->servers;
        index -= count;
        json_incref (object);
    }
    else
        object = part_of_breakdown (object);
    if (!list)
        json_decref (object);
    else if (json_array_set_new (list, index, object) < 0)
        flux_log (job->ctx->h, LOG_ERR, "breakdown: out of memory");
}

/* Servers that are not there are noted as an empty object: it is libdws that
 * tells the user.
 */
static bool note_missing (struct job *job, size_t index, int status)
{
    json_t *nothing;

    if (status != 404 || index < json_array_size (job->breakdowns)
        || !(nothing = json_object ()))
        return false;
    note_read (job, index, nothing);
    json_decref (nothing);
    return true;
}

static bool all_read (json_t *breakdowns)
{
    json_t *entry;
    size_t index;

    json_array_foreach (breakdowns, index, entry) {
        if (!json_is_object (entry))
            return false;
    }
    return true;
}

/* All objects that were asked for are there. Go on with those that they
 * refer to, or be done.
 */
static bool note_all_read (struct job *job)
{
    if (!all_read (job->breakdowns) || !all_read (job->servers)
        || json_array_size (job->breakdowns) == 0)
        return true;
    if (!job->servers) {
        if (read_servers (job) < 0) {
            flux_log_error (job->ctx->h, "servers");
            return false;
        }
        if (json_array_size (job->servers) > 0)
            return true;
    }
    if (dws_jsontext_set (&job->wf->breakdowns, job->breakdowns) < 0) {
        flux_log_error (job->ctx->h, "breakdowns");
        return false;
    }
    json_decref (job->breakdowns);
    job->breakdowns = NULL;
    return true;
}

/* The Workflow object was read to be stored. If it could not be, another
 * decision may ask for it again.
 */
static void note_workflow (struct job *job, uint32_t bit, json_t *object)
{
    if (!(job->reading & bit))
        return;
    job->reading &= ~bit;
    if (!object || actions_save (job, DWS_STATE_NONE, object) < 0)
        flux_log (job->ctx->h, LOG_ERR, "rabbit_workflow could not be saved");
}

/* The last result of its kind is in: what does it add up to? Returns false if
 * it has to be asked for again.
 */
static bool note_complete (struct job *job, enum dws_action_kind kind)
{
    switch (kind) {
        case DWS_ACT_BREAKDOWNS:
            return note_all_read (job);
        case DWS_ACT_SERVERS:
            job->wf->servers_written = true;
            break;
        case DWS_ACT_COMPUTES:
            job->wf->computes_written = true;
            break;
        case DWS_ACT_EXCLUDE:
            job->wf->excluded = true;
            break;
        case DWS_ACT_DISABLE:
            job->wf->disabled = true;
            break;
        case DWS_ACT_MOVEMENTS:
            job->wf->movements = true;
            break;
        case DWS_ACT_FINALIZER:
            job->wf->finalizer = false;
            break;
        case DWS_ACT_DELETE:
            job->wf->deleting = true;
            break;
        default:
            break;
    }
    return true;
}

static bool is_for_workflow (enum dws_action_kind kind)
{
    return kind == DWS_ACT_DESIRE || kind == DWS_ACT_TEARDOWN
        || kind == DWS_ACT_FORCE_READY
        || kind == DWS_ACT_FINALIZER || kind == DWS_ACT_DELETE;
}

static bool is_list (enum dws_action_kind kind)
{
    return kind == DWS_ACT_MOUNTS || kind == DWS_ACT_ALLOCATIONS
        || kind == DWS_ACT_MOVEMENTS || kind == DWS_ACT_PROGRESS;
}

void actions_result (struct dws_ctx *ctx,
                     const struct command *cmd,
                     json_t *report)
{
    struct job *job = jobs_find (ctx->jobs, cmd->jobid);
    int ok = 0;
    int status = 0;
    const char *message = "";
    json_t *object = NULL;
    json_t *objects = NULL;
    bool current;

    if (!job)
        return;
    json_unpack (report, "{s?b s?i s?s s?o s?o}",
                 "ok", &ok,
                 "status", &status,
                 "message", &message,
                 "object", &object,
                 "objects", &objects);
    current = job->generation == cmd->generation;
    if (cmd->kind == DWS_ACT_CREATE)
        ok = created (job, ok, status, message, object);
    else if (cmd->kind == DWS_ACT_BREAKDOWNS && current) {
        if (ok)
            note_read (job, cmd->index, object);
        else
            ok = note_missing (job, cmd->index, status);
    }
    else if (is_for_workflow (cmd->kind)) {
        if (ok && object)
            jobs_learn_workflow (ctx->jobs, object, false);
        else if (!ok && status == 404) {
            /* Somebody deleted it. The watch has yet to tell. */
            if (current)
                jobs_forget_workflow (job);
            ok = true;
        }
    }
    if (!ok) {
        trouble_log (job, cmd->kind, status, message);
        job_set_trouble (job, message);
    }
    if (cmd->kind == DWS_ACT_SAVE) {
        job->reads--;
        if (current)
            note_workflow (job, cmd->index, ok ? object : NULL);
        if (ok && object)
            jobs_learn_workflow (ctx->jobs, object, false);
        ok = true;
    }
    if (is_list (cmd->kind)) {
        if (current && job->wf)
            failures_listed (job, cmd->kind, cmd->index,
                             ok ? objects : NULL);
        ok = true;
    }
    /* What the object does not show yet, or does not show at all. */
    if (ok && job->wf && job->generation == cmd->generation
        && job->under_way[cmd->kind] == 1
        && !(job->failed & DWS_BUSY (cmd->kind)))
        ok = note_complete (job, cmd->kind);
    job_end (job, cmd->kind, ok);
}

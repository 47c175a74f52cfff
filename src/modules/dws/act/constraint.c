/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See constraint.h. The rabbits of a job follow from its R, which the KVS has while it
 * runs and after that; who its owner is, from its eventlog. The result is kept until this
 * job is forgotten, so that the job named in dw_near may end meanwhile. After a restart
 * of the module it is looked up again.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libdws/storage/resources.h"
#include "libdws/storage/constraint.h"
#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"
#include "act/kvs.h"
#include "act/constraint.h"
#include "agent/agent.h"
#include "base/calls.h"
#include "facts/config.h"
#include "facts/persistent.h"
#include "facts/space.h"

/* Delay before a failed request is repeated (s).
 */
#define AGAIN 1.

struct near {
    char *rabbits;              // of what dw_near names
    char *fault;                // or why the lookup failed
    bool asked;
};

static void near_destroy (struct job *job, void *data)
{
    struct near *near = data;

    free (near->rabbits);
    free (near->fault);
    free (near);
}

/* If memory for the text runs out, 'fault' stays NULL and the search is
 * repeated.
 */
static void set_fault (struct near *near, const char *what, const char *text)
{
    dws_error_t error;

    dws_error (&error, EINVAL, "dw_near: %s%s", what, text);
    free (near->fault);
    near->fault = strdup (error.text);
}

/* The job of an answer, or NULL if it is not awaited any more.
 */
static struct job *asking_job (const struct call *call, struct near **near)
{
    struct job *job = jobs_find (call->ctx->jobs, call->jobid);

    if (!job || !(*near = job_slot (job, SLOT_CONSTRAINT)) || !(*near)->asked)
        return NULL;
    (*near)->asked = false;
    return job;
}

/* A job
 */

static void read_job (struct job *job, struct near *near, const char *key,
                      call_f cb)
{
    flux_jobid_t id;

    if (flux_job_id_parse (job->facts->near, &id) == 0
        && calls_add (job->ctx, kvs_lookup_job (job->ctx->h, id, key),
                      job->facts->id, 0, cb) == 0)
        near->asked = true;
    else
        jobs_wake (job, AGAIN);
}

static void set_hosts (struct job *job, struct near *near, const char *hosts)
{
    char what[160];
    dws_error_t error;

    snprintf (what, sizeof (what), "job %.64s: ", job->facts->near);
    if (!(near->rabbits = dws_constraint_rabbits (hosts, job->ctx->config->topology,
                                                  &error)))
        set_fault (near, what, error.text);
}

static void R_cb (const struct call *call, flux_future_t *f)
{
    struct near *near;
    struct job *job = asking_job (call, &near);
    struct dws_job other = { 0 };
    dws_error_t error;
    char what[160];
    json_t *R;

    if (!job)
        return;
    snprintf (what, sizeof (what), "job %.64s", job->facts->near);
    if ((R = kvs_lookup_R_get (f))) {
        if (dws_job_set_R (&other, R, &error) < 0)
            set_fault (near, "", error.text);
        else
            set_hosts (job, near, other.hosts);
        free (other.hosts);
        json_decref (R);
    }
    else if (errno == ENOENT)
        set_fault (near, what, " has no nodes, as it has not started");
    else {
        jobs_wake (job, AGAIN);
        return;
    }
    jobs_changed (job);
}

/* The user id in the first event, "submit". Returns -1 if there is none.
 */
static json_int_t owner_of (const char *eventlog)
{
    json_int_t userid = -1;
    const char *name = "";
    json_t *entry;

    entry = json_loadb (eventlog, strcspn (eventlog, "\n"), 0, NULL);
    (void)json_unpack (entry, "{s:s s:{s:I}}", "name", &name,
                       "context", "userid", &userid);
    json_decref (entry);
    return strcmp (name, "submit") == 0 ? userid : -1;
}

static void eventlog_cb (const struct call *call, flux_future_t *f)
{
    struct near *near;
    struct job *job = asking_job (call, &near);
    const char *eventlog = NULL;
    char what[160];

    if (!job)
        return;
    snprintf (what, sizeof (what), "'%.64s'", job->facts->near);
    if (flux_kvs_lookup_get (f, &eventlog) < 0 && errno != ENOENT) {
        jobs_wake (job, AGAIN);
        return;
    }
    if (!eventlog)
        set_fault (near, what, " is neither a job nor a persistent file system"
                   " that there is");
    else if (job->facts->userid != getuid ()
             && owner_of (eventlog) != (json_int_t)job->facts->userid)
        set_fault (near, what, " is another user's job");
    else {
        read_job (job, near, "R", R_cb);
        return;
    }
    jobs_changed (job);
}

/* A persistent file system
 */

static void set_rabbits (struct job *job, struct near *near,
                         const struct dws_bytes *bytes)
{
    if (bytes->count > 0)
        near->rabbits = dws_bytes_rabbits (bytes);
    else
        set_fault (near, job->facts->near, ": this file system has nothing on"
                   " rabbits yet");
}

/* Look up dw_near. A name may look like a job id, so file systems come first.
 */
static void look_up (struct job *job, struct near *near)
{
    const struct dws_ctx *ctx = job->ctx;
    const char *name = job->facts->near;
    struct dws_bytes bytes = { 0 };
    dws_error_t error;
    flux_jobid_t id;

    if (persistent_bytes (ctx->persistent, ctx->space, name, job->facts->userid,
                          &bytes, &error) == 0) {
        set_rabbits (job, near, &bytes);
        dws_bytes_clear (&bytes);
    }
    else if (errno == EPERM)
        set_fault (near, "", error.text);
    else if (flux_job_id_parse (name, &id) < 0)
        set_fault (near, "", error.text);
    else
        read_job (job, near, "eventlog", eventlog_cb);
}

bool constraint_ready (struct job *job)
{
    struct near *near;

    if (!job->facts->near || job->facts->phase != DWS_PHASE_DEPEND)
        return true;
    near = job_slot_make (job, SLOT_CONSTRAINT, sizeof (*near), near_destroy);
    if (near && (near->rabbits || near->fault))
        return true;
    if (near && near->asked)
        return false;
    if (near && agent_link (job->ctx->agent) == DWS_LINK_UP
        && space_known (job->ctx->space)) {
        look_up (job, near);
        if (near->rabbits || near->fault)
            return true;
        if (near->asked)
            return false;
    }
    jobs_wake (job, AGAIN);
    return false;
}

/* Add the condition to be next to 'rabbits'. Takes over 'so_far'.
 */
static json_t *add (struct job *job, json_t *so_far, const char *key,
                    const char *rabbits, int64_t nodes, dws_error_t *error)
{
    json_t *next;
    json_t *both = NULL;

    if (!(next = dws_constraint_make (rabbits, job->ctx->config->topology,
                                      nodes, error)))
        dws_error (error, errno, "%s: %s", key, error->text);
    else
        both = dws_constraint_join (so_far, next, nodes, error);
    ERRNO_SAFE (json_decref (so_far));
    ERRNO_SAFE (json_decref (next));
    return both;
}

json_t *constraint_make (struct job *job, int64_t nodes, dws_error_t *error)
{
    const struct dws_job *facts = job->facts;
    const struct near *near = job_slot (job, SLOT_CONSTRAINT);
    json_t *o = json_null ();

    if (near && near->fault) {
        dws_error (error, EINVAL, "%s", near->fault);
        return NULL;
    }
    if (facts->rabbits)
        o = add (job, o, "dw_rabbits", facts->rabbits, nodes, error);
    if (o && facts->near && near && near->rabbits)
        o = add (job, o, "dw_near", near->rabbits, nodes, error);
    return o;
}

int constraint_check (struct job *job, dws_error_t *error)
{
    json_t *resources = dws_jsontext_get (job->facts->resources);
    json_t *o;

    if (!resources)
        return dws_error_nomem (error);
    o = constraint_make (job, dws_resources_nodes (resources), error);
    ERRNO_SAFE (json_decref (resources));
    if (!o)
        return -1;
    json_decref (o);
    return 0;
}

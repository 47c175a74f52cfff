/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See near.h. The rabbits of a job follow from its R, which the KVS has while it runs
 * and after that; who its owner is, from its eventlog. The result is kept until this
 * job is forgotten, so that the job named in dw_near may end meanwhile. After a restart
 * of the module it is looked up again.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libdws/storage/resources.h"
#include "libdws/storage/near.h"
#include "libdws/util/hosts.h"
#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"
#include "act/kvs.h"
#include "act/near.h"
#include "agent/agent.h"
#include "base/calls.h"
#include "facts/config.h"
#include "facts/persistent.h"
#include "facts/space.h"

/* Delay before a failed request is repeated (s).
 */
#define AGAIN 1.

/* If memory for the text runs out, near_fault stays NULL and the search is
 * repeated.
 */
static void set_fault (struct job *job, const char *what, const char *text)
{
    dws_error_t error;

    dws_error (&error, EINVAL, "dw_near: %s%s", what, text);
    free (job->near_fault);
    job->near_fault = strdup (error.text);
}

/* A job
 */

static void read_job (struct job *job, const char *key, call_f cb)
{
    flux_jobid_t id;

    if (flux_job_id_parse (job->facts->near, &id) == 0
        && calls_add (job->ctx, kvs_lookup_job (job->ctx->h, id, key),
                      job->facts->id, 0, cb) == 0)
        job->near_asked = true;
    else
        jobs_wake (job, AGAIN);
}

static void set_hosts (struct job *job, const char *hosts)
{
    char what[160];
    dws_error_t error;

    snprintf (what, sizeof (what), "job %.64s: ", job->facts->near);
    if (!(job->near = dws_near_rabbits (hosts, job->ctx->config->topology,
                                        &error)))
        set_fault (job, what, error.text);
}

static void R_cb (const struct call *call, flux_future_t *f)
{
    struct job *job = jobs_find (call->ctx->jobs, call->jobid);
    struct dws_job other = { 0 };
    dws_error_t error;
    char what[160];
    json_t *R;

    if (!job || !job->near_asked)
        return;
    job->near_asked = false;
    snprintf (what, sizeof (what), "job %.64s", job->facts->near);
    if ((R = kvs_lookup_R_get (f))) {
        if (dws_job_set_R (&other, R, &error) < 0)
            set_fault (job, "", error.text);
        else
            set_hosts (job, other.hosts);
        free (other.hosts);
        json_decref (R);
    }
    else if (errno == ENOENT)
        set_fault (job, what, " has no nodes, as it has not started");
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
    struct job *job = jobs_find (call->ctx->jobs, call->jobid);
    const char *eventlog = NULL;
    char what[160];

    if (!job || !job->near_asked)
        return;
    job->near_asked = false;
    snprintf (what, sizeof (what), "'%.64s'", job->facts->near);
    if (flux_kvs_lookup_get (f, &eventlog) < 0 && errno != ENOENT) {
        jobs_wake (job, AGAIN);
        return;
    }
    if (!eventlog)
        set_fault (job, what, " is neither a job nor a persistent file system"
                   " that there is");
    else if (job->facts->userid != getuid ()
             && owner_of (eventlog) != (json_int_t)job->facts->userid)
        set_fault (job, what, " is another user's job");
    else {
        read_job (job, "R", R_cb);
        return;
    }
    jobs_changed (job);
}

/* A persistent file system
 */

static void set_rabbits (struct job *job, json_t *by_rabbit)
{
    if (json_object_size (by_rabbit) > 0)
        job->near = dws_hosts_merge_json (by_rabbit, NULL);
    else
        set_fault (job, job->facts->near, ": this file system has nothing on"
                   " rabbits yet");
}

/* Look up dw_near. A name may look like a job id, so file systems come first.
 */
static void look_up (struct job *job)
{
    const struct dws_ctx *ctx = job->ctx;
    const char *near = job->facts->near;
    json_t *by_rabbit;
    dws_error_t error;
    flux_jobid_t id;

    if ((by_rabbit = persistent_rabbits (ctx->persistent, ctx->space, near,
                                         job->facts->userid, &error))) {
        set_rabbits (job, by_rabbit);
        json_decref (by_rabbit);
    }
    else if (errno == EPERM)
        set_fault (job, "", error.text);
    else if (flux_job_id_parse (near, &id) < 0)
        set_fault (job, "", error.text);
    else
        read_job (job, "eventlog", eventlog_cb);
}

bool near_ready (struct job *job)
{
    if (!job->facts->near || job->facts->phase != DWS_PHASE_DEPEND
        || job->near || job->near_fault)
        return true;
    if (job->near_asked)
        return false;
    if (agent_link (job->ctx->agent) != DWS_LINK_UP
        || !space_known (job->ctx->space)) {
        jobs_wake (job, AGAIN);
        return false;
    }
    look_up (job);
    if (job->near || job->near_fault)
        return true;
    if (!job->near_asked)       // no memory
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

    if (!(next = dws_near_constraint (rabbits, job->ctx->config->topology,
                                      nodes, error)))
        dws_error (error, errno, "%s: %s", key, error->text);
    else
        both = dws_near_join (so_far, next, nodes, error);
    ERRNO_SAFE (json_decref (so_far));
    ERRNO_SAFE (json_decref (next));
    return both;
}

json_t *near_constraint (struct job *job, int64_t nodes, dws_error_t *error)
{
    const struct dws_job *facts = job->facts;
    json_t *o = json_null ();

    if (job->near_fault) {
        dws_error (error, EINVAL, "%s", job->near_fault);
        return NULL;
    }
    if (facts->rabbits)
        o = add (job, o, "dw_rabbits", facts->rabbits, nodes, error);
    if (o && facts->near && job->near)
        o = add (job, o, "dw_near", job->near, nodes, error);
    return o;
}

int near_check (struct job *job, dws_error_t *error)
{
    json_t *resources = dws_jsontext_get (job->facts->resources);
    json_t *o;

    if (!resources)
        return dws_error_nomem (error);
    o = near_constraint (job, dws_resources_nodes (resources), error);
    ERRNO_SAFE (json_decref (resources));
    if (!o)
        return -1;
    json_decref (o);
    return 0;
}

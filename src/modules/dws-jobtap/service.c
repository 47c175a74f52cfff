/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The job-manager.dws.* services; see service.h.
 */

#include <errno.h>
#include <string.h>
#include <syslog.h>

#include "libdws/util/fields.h"
#include "libdws/util/jsonmake.h"
#include "libutil/safelog.h"
#include "queue.h"
#include "service.h"
#include "user.h"

static void answer_empty (struct jobtap *ctx, const flux_msg_t *msg)
{
    if (flux_respond (ctx->h, msg, NULL) < 0)
        safe_log_error (ctx->h, "dws: respond");
}

static void answer_error (struct jobtap *ctx,
                           const flux_msg_t *msg,
                           const char *text)
{
    if (flux_respond_error (ctx->h, msg, errno, text) < 0)
        safe_log_error (ctx->h, "dws: respond");
}

/* ENOENT tells the module to forget the request: no job is there in which its work could
 * have been done already.
 */
static int unknown (const char **error)
{
    errno = ENOENT;
    *error = "there is no active job of this id";
    return -1;
}

/* Keep 'msg' for later if the job is not known yet.
 */
static bool defer_request (struct jobtap *ctx,
                           struct jobtap_job *job,
                           const flux_msg_t *msg)
{
    if (!job || job->known || !job->accepted)
        return false;
    if (flux_msglist_append (ctx->deferred, msg) < 0)
        answer_error (ctx, msg, NULL);
    return true;
}

/* An attribute that is given to flux submit without a value is 1.
 */
static bool is_set (json_t *attribute)
{
    return json_is_true (attribute) || json_integer_value (attribute) != 0;
}

/* Exempt the rabbits: they have no rabbit themselves, and may be in no queue, so the
 * constraints on nodes with storage would exclude them. Takes over 'constraints'.
 */
static json_t *or_rabbits (json_t *constraints)
{
    json_t *o = json_pack ("{s:[{s:[s]} o]}", "or", "properties", "rabbit",
                           constraints);

    if (!o)
        errno = ENOMEM;
    return o;
}

/* Join our constraint to that of the user: both must hold. A constraint that was joined
 * before is dropped.
 */
static json_t *join_constraints (struct jobtap_job *job, json_t *exclude)
{
    flux_plugin_arg_t *args;
    json_t *constraints = NULL;
    json_t *rabbits = NULL;
    json_t *joined = NULL;

    if (!(args = flux_jobtap_job_lookup (job->ctx->p, job->id)))
        return NULL;
    if (flux_plugin_arg_unpack (args,
                                FLUX_PLUGIN_ARG_IN,
                                "{s:{s?{s?{s?o s?o}}}}",
                                "jobspec",
                                "attributes",
                                "system",
                                "constraints", &constraints,
                                "allow_rabbits", &rabbits) < 0) {
        errno = EPROTO;
        goto done;
    }
    if (job->updated)
        constraints = job->constraints;
    else {
        json_decref (job->constraints);
        job->constraints = json_incref (constraints);
    }
    if (!exclude || json_is_null (exclude))
        joined = constraints ? json_incref (constraints) : json_object ();
    else if (!constraints)
        joined = json_incref (exclude);
    else if (!(joined = json_pack ("{s:[O,O]}", "and", constraints, exclude)))
        errno = ENOMEM;
    if (joined && is_set (rabbits) && json_object_size (joined) > 0)
        joined = or_rabbits (joined);
done:
    flux_plugin_arg_destroy (args);
    return joined;
}

/* 'first' is NULL if it is not said. An obsolete constraint is replaced by an empty one,
 * as a key cannot be removed.
 */
static int update_jobspec (struct jobtap_job *job, json_t *resources,
                           json_t *exclude, json_t *first)
{
    bool again = job->updated;
    bool limited = exclude && !json_is_null (exclude);
    json_t *constraints;
    int rc;

    if (!(constraints = join_constraints (job, exclude)))
        return -1;
    if (!limited && !again) {
        json_decref (constraints);
        constraints = NULL;
    }
    rc = flux_jobtap_jobspec_update_id_pack (job->ctx->p,
                                             job->id,
                                             "{s:O s:o* s:O*}",
                                             "resources", resources,
                                             "attributes.system.constraints",
                                             constraints,
                                             "attributes.system.dw_data_first",
                                             first);
    if (rc == 0)
        job->updated = true;
    return rc;
}

/* Let a job in the queue run on nodes that are not next to its data. The request comes
 * too late if the job has its nodes by now.
 */
static int unstage (struct jobtap_job *job, json_t *resources, json_t *exclude,
                    const char **error)
{
    if (!jobtap_job_is_queued (job)) {
        errno = EBUSY;
        *error = "the job has its nodes, or has ended";
        return -1;
    }
    *error = "could not update the jobspec";
    return update_jobspec (job, resources, exclude, json_false ());
}

static int resource_update (struct jobtap *ctx, struct jobtap_job *job,
                            json_t *payload, const char **error)
{
    json_t *resources;
    json_t *exclude;
    json_t *first = NULL;
    const char *errmsg = NULL;

    if (json_unpack (payload, "{s:o s:o s?s s?o}",
                     "resources", &resources,
                     "exclude", &exclude,
                     "errmsg", &errmsg,
                     "first", &first) < 0) {
        errno = EPROTO;
        return -1;
    }
    if (!job)
        return unknown (error);
    if (!jobtap_facts_depend_held (&job->facts)) {
        return json_is_false (first) && !errmsg
               ? unstage (job, resources, exclude, error) : 0;
    }
    if (jobtap_job_state (job) != FLUX_JOB_STATE_DEPEND)
        return 0;
    if (errmsg) {
        jobtap_job_raise (job, DWS_DEPENDENCY, errmsg);
        return 0;
    }
    /* If the dependency could not be removed, only that is left to do, except for a
     * job that is to have its storage first: that may be another by now.
     */
    *error = "could not update the jobspec";
    if ((!job->updated || first)
        && update_jobspec (job, resources, exclude, first) < 0)
        return -1;
    *error = "could not remove the dependency";
    return flux_jobtap_dependency_remove (ctx->p, job->id, DWS_DEPENDENCY);
}

/* The event says that there is a token, which shells then ask for. The token
 * itself is not in the event, as that stays in the eventlog.
 */
static int post_environment (struct jobtap *ctx,
                             json_int_t id,
                             json_t *variables,
                             bool token)
{
    return flux_jobtap_event_post_pack (ctx->p,
                                        id,
                                        DWS_ENVIRONMENT,
                                        token ? "{s:O s:b}" : "{s:O}",
                                        "variables", variables,
                                        "token", token);
}

static int prolog_remove (struct jobtap *ctx, struct jobtap_job *job,
                          json_t *payload, const char **error)
{
    json_t *variables;
    int token = 0;

    if (json_unpack (payload, "{s:o s?b}",
                     "variables", &variables,
                     "token", &token) < 0) {
        errno = EPROTO;
        return -1;
    }
    if (!job)
        return unknown (error);
    if (!jobtap_facts_prolog_held (&job->facts))
        return 0;
    *error = "could not post the dws_environment event";
    if (!job->facts.environment_posted
        && post_environment (ctx, job->id, variables, token) < 0)
        return -1;
    *error = "could not finish the prolog";
    return jobtap_job_release_prolog (job, 0);
}

static int epilog_remove (struct jobtap *ctx, struct jobtap_job *job,
                          json_t *payload, const char **error)
{
    *error = "could not finish the epilog";
    return job ? jobtap_job_release_epilog (job, 0) : 0;
}

json_t *jobtap_service_list (struct jobtap *ctx)
{
    json_t *jobs = json_array ();

    for (struct jobtap_job *job = ctx->jobs; job; job = job->next) {
        json_t *o = jobtap_job_encode (job);

        if (!json_is_null (o))
            dws_json_append (&jobs, o);
    }
    return jobs;
}

static void sync_cb (flux_t *h,
                     flux_msg_handler_t *mh,
                     const flux_msg_t *msg,
                     void *arg)
{
    struct jobtap *ctx = arg;
    json_t *jobs;

    for (struct jobtap_job *job = ctx->jobs; job; job = job->next) {
        if (defer_request (ctx, job, msg))
            return;
    }
    if (!(jobs = jobtap_service_list (ctx))) {
        answer_error (ctx, msg, NULL);
        return;
    }
    if (flux_respond_pack (h, msg, "{s:o s:s}", "jobs", jobs,
                           "release", DWS_RELEASE) < 0)
        safe_log_error (h, "dws: respond");
    for (struct jobtap_job *job = ctx->jobs; job; job = job->next) {
        if (!job->nameless)
            job->taken = JOBTAP_TAKEN_YES;
    }
    jobtap_user_request_all (ctx);
}

/* Without a number the scheduler itself holds jobs that need more nodes than are up.
 */
static void nodes_cb (flux_t *h,
                      flux_msg_handler_t *mh,
                      const flux_msg_t *msg,
                      void *arg)
{
    struct jobtap *ctx = arg;
    json_int_t up = JOBTAP_QUEUE_OPEN;
    json_int_t all = JOBTAP_QUEUE_OPEN;

    if (flux_request_unpack (msg, NULL, "{s?I s?I}",
                             "up", &up,
                             "all", &all) < 0) {
        answer_error (ctx, msg, NULL);
        return;
    }
    jobtap_queue_set (ctx, up, all);
    answer_empty (ctx, msg);
}

/* A method about one job, which is known by now, or NULL. Returns 0, or -1 with errno
 * and maybe 'error' set.
 */
typedef int (*job_f)(struct jobtap *ctx, struct jobtap_job *job,
                     json_t *payload, const char **error);

static const struct {
    const char *name;
    job_f job;                  // or NULL
    flux_msg_handler_f cb;      // which answers itself
    struct dws_field fields[6];
} methods[] = {
    { "resource-update", resource_update, NULL, {
        DWS_REQUIRED ("id", ID),
        DWS_REQUIRED ("resources", ARRAY),
        DWS_REQUIRED ("exclude", OBJECT, .nullable = true),
        DWS_OPTIONAL ("errmsg", STRING),
        DWS_OPTIONAL ("first", BOOL),
    } },
    { "prolog-remove", prolog_remove, NULL, {
        DWS_REQUIRED ("id", ID),
        DWS_REQUIRED ("variables", VARIABLES),
        DWS_OPTIONAL ("token", BOOL),
    } },
    { "epilog-remove", epilog_remove, NULL, {
        DWS_REQUIRED ("id", ID),
    } },
    { "sync", NULL, sync_cb, { { 0 } } },
    { "nodes", NULL, nodes_cb, {
        DWS_OPTIONAL ("up", INTEGER),
        DWS_OPTIONAL ("all", INTEGER),
    } },
};

static void about_job (struct jobtap *ctx, const flux_msg_t *msg,
                       json_t *payload, job_f method)
{
    struct jobtap_job *job;
    const char *error = NULL;
    json_int_t id;

    if (json_unpack (payload, "{s:I}", "id", &id) < 0) {
        errno = EPROTO;
        answer_error (ctx, msg, NULL);
        return;
    }
    job = jobtap_job_lookup (ctx, id);
    if (defer_request (ctx, job, msg))
        return;
    if (method (ctx, job, payload, &error) < 0)
        answer_error (ctx, msg, error);
    else
        answer_empty (ctx, msg);
}

#define METHOD_COUNT (sizeof (methods) / sizeof (methods[0]))

/* Handles every request; deferred requests come here a second time.
 */
static void request_cb (flux_t *h,
                        flux_msg_handler_t *mh,
                        const flux_msg_t *msg,
                        void *arg)
{
    struct jobtap *ctx = arg;
    dws_error_t error = { "" };
    const char *topic;
    const char *name;
    json_t *payload = NULL;

    if (flux_msg_get_topic (msg, &topic) < 0
        || !(name = strrchr (topic, '.')))
        return;
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        if (strcmp (methods[i].name, name + 1) != 0)
            continue;
        if ((flux_msg_has_payload (msg)
             && flux_msg_unpack (msg, "o", &payload) < 0)
            || dws_fields_check (payload, methods[i].fields, &error) < 0)
            answer_error (ctx, msg, error.text[0] ? error.text : NULL);
        else if (methods[i].job)
            about_job (ctx, msg, payload, methods[i].job);
        else
            methods[i].cb (h, mh, msg, ctx);
        return;
    }
}

void jobtap_service_retry (struct jobtap *ctx)
{
    /* Requests that must wait longer are put back at the end. */
    int count = flux_msglist_count (ctx->deferred);

    while (count-- > 0 && flux_msglist_first (ctx->deferred)) {
        const flux_msg_t *msg = flux_msglist_pop (ctx->deferred);

        request_cb (ctx->h, NULL, msg, ctx);
        flux_msg_decref (msg);
    }
}

static void deferred_timer_cb (flux_reactor_t *r,
                               flux_watcher_t *w,
                               int revents,
                               void *arg)
{
    jobtap_service_retry (arg);
}

int jobtap_service_register (struct jobtap *ctx)
{
    flux_reactor_t *r = flux_get_reactor (ctx->h);

    if (!(ctx->retry = flux_timer_watcher_create (r,
                                                  0.,
                                                  0.,
                                                  deferred_timer_cb,
                                                  ctx)))
        return -1;
    for (size_t i = 0; i < METHOD_COUNT; i++) {
        if (flux_jobtap_service_register (ctx->p,
                                          methods[i].name,
                                          request_cb,
                                          ctx) < 0)
            return -1;
    }
    return 0;
}

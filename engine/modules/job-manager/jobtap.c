/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The jobtap plugin stack: callbacks and what comes back from them.
 */
#include "common/va.h"
#include "jobtap.h"

struct jobtap *jobtap_of (flux_plugin_t *p)
{
    struct jobtap *jt = NULL;

    if (!p || !(jt = flux_plugin_aux_get (p, "flux::jobtap")))
        errno = EINVAL;
    return jt;
}

/* Builtins and loaded objects are known by different names. */
const char *jobtap_plugin_name (flux_plugin_t *p)
{
    const char *name = flux_plugin_aux_get (p, "jobtap::basename");

    if (!name)
        name = flux_plugin_get_name (p);
    return name ? name : "unknown";
}

/* Output arguments start as {} so that unpacking them never fails. */
flux_plugin_arg_t *jobtap_args (struct job *job)
{
    flux_plugin_arg_t *args;

    if (!(args = flux_plugin_arg_create ()))
        return NULL;
    if (flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_IN,
                              "{s:i s:I s:I s:f s:O s:i s:I}",
                              "state", job->state,
                              "id", job->id,
                              "priority", job->priority,
                              "t_submit", job->t_submit,
                              "jobspec", job->jobspec,
                              "urgency", job->urgency,
                              "userid", (json_int_t)job->userid) < 0
        || (job->R
            && flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_IN,
                                     "{s:O}", "R", job->R) < 0)
        || (job->end_event
            && flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_IN, "{s:O}",
                                     "end_event", job->end_event) < 0)
        || flux_plugin_arg_set (args, FLUX_PLUGIN_ARG_OUT, "{}") < 0) {
        flux_plugin_arg_destroy (args);
        return NULL;
    }
    return args;
}

/* Jobspec updates wait until the callback, which may hold on to parts of
 * the jobspec, is back.  Posting can lead to further callbacks.
 */
static int post_spec_update (struct jobtap *jt, struct frame *frame)
{
    json_t *update = frame->update;

    if (!update)
        return 0;
    frame->update = NULL;
    return event_post (jt->jm, frame->job, 0, "jobspec-update", "o", update);
}

/* A copy of the list is walked since a callback may (un)subscribe or, by
 * way of a synchronous RPC, load and remove.
 */
int jobtap_stack_call (struct jobtap *jt, flux_plugin_t **plugins,
                       size_t count, struct job *job, const char *topic,
                       flux_plugin_arg_t *args)
{
    flux_plugin_t *stack[count + 1];
    struct frame frame = { .up = jt->top, .job = job_incref (job) };
    int called = 0;

    if (count > 0)
        memcpy (stack, plugins, count * sizeof (stack[0]));
    jt->top = &frame;
    for (size_t i = 0; i < count; i++) {
        int rc = flux_plugin_call (stack[i], topic, args);

        if (rc >= 0 && post_spec_update (jt, &frame) < 0) {
            flux_log_error (jt->jm->h, "jobtap: %s: %s: jobspec update",
                            jobtap_plugin_name (stack[i]), topic);
            rc = -1;
        }
        if (rc < 0) {
            flux_log (jt->jm->h, LOG_DEBUG, "jobtap: %s: %s: rc=%d",
                      jobtap_plugin_name (stack[i]), topic, rc);
            called = -1;
            break;
        }
        called += rc;
    }
    jt->top = frame.up;
    json_decref (frame.update);
    job_decref (job);
    return called;
}

static bool has_handler (struct jobtap *jt, const char *topic)
{
    for (size_t i = 0; i < jt->nplugins; i++) {
        if (flux_plugin_match_handler (jt->plugins[i], topic))
            return true;
    }
    return false;
}

void jobtap_errmsg (flux_plugin_arg_t *args, const char *def,
                    flux_error_t *error)
{
    const char *s;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_OUT,
                                "{s:s}", "errmsg", &s) < 0)
        s = def;
    set_error (error, "%s", s);
}

static void raise_note (struct manager *jm, struct job *job,
                        const char *type, const char *fmt, ...)
    __attribute__ ((format (printf, 4, 5)));

static void raise_note (struct manager *jm, struct job *job,
                        const char *type, const char *fmt, ...)
{
    char note[1024];

    VA_DO (fmt, vsnprintf (note, sizeof (note), fmt, ap));
    if (raise_exception (jm, job, type, 4, jm->owner, note, -1) < 0)
        flux_log_error (jm->h, "%s: error raising exception: %s",
                        idf58 (job->id), note);
}

/* R from job.state.sched takes the scheduler's place. */
static int take_R (struct jobtap *jt, struct job *job, const char *topic,
                   json_t *R)
{
    const char *problem = NULL;

    if (!streq (topic, "job.state.sched"))
        problem = "resources are taken from job.state.sched only";
    else if (job->R)
        problem = "the job has resources already";
    if (problem) {
        flux_log (jt->jm->h, LOG_ERR, "jobtap: %s: %s: %s",
                  topic, idf58 (job->id), problem);
        return -1;
    }
    job->R = json_incref (R);
    return 0;
}

static int take_output (struct jobtap *jt, struct job *job,
                        const char *topic, flux_plugin_arg_t *args)
{
    int64_t priority = PRIORITY_UNAVAIL;
    json_t *notes = NULL;
    json_t *R = NULL;
    int rc = 0;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_OUT,
                                "{s?I s?o s?o}",
                                "priority", &priority,
                                "annotations", &notes,
                                "R", &R) < 0) {
        raise_note (jt->jm, job, topic, "malformed output: %s%s",
                    flux_plugin_arg_strerror (args),
                    job->state == FLUX_JOB_STATE_PRIORITY
                      ? "; the job has no priority" : "");
        return -1;
    }
    if (R)
        rc = take_R (jt, job, topic, R);
    if (notes) {
        // before its first event the journal must not speak of a job
        int n = streq (topic, "job.new")
            ? job_annotate (job, NULL, notes)
            : annotate_and_publish (jt->jm, job, notes);

        if (n < 0)
            flux_log_error (jt->jm->h, "jobtap: %s: %s: annotations",
                            topic, idf58 (job->id));
    }
    if (priority >= FLUX_JOB_PRIORITY_MIN
        && reprioritize_job (jt->jm, job, priority) < 0)
        flux_log_error (jt->jm->h, "jobtap: %s: %s: priority",
                        topic, idf58 (job->id));
    return rc;
}

int jobtap_call (struct manager *jm, struct job *job, const char *topic,
                 const char *fmt, ...)
{
    struct jobtap *jt = jm->jobtap;
    flux_plugin_arg_t *args;
    int rc = 0;

    if (!has_handler (jt, topic))
        return 0;
    if (!(args = jobtap_args (job)))
        goto error;
    if (fmt) {
        rc = VA (fmt, flux_plugin_arg_vpack (args,
                                             FLUX_PLUGIN_ARG_IN,
                                             fmt,
                                             ap));
        if (rc < 0)
            goto error;
    }
    rc = jobtap_stack_call (jt, jt->plugins, jt->nplugins, job, topic, args);
    if (rc < 0)
        flux_log (jm->h, LOG_ERR, "jobtap: %s: callback returned error",
                  topic);
    if (take_output (jt, job, topic, args) < 0)
        rc = -1;
    flux_plugin_arg_destroy (args);
    return rc;
error:
    flux_log_error (jm->h, "jobtap: %s: %s: cannot call",
                    topic, idf58 (job->id));
    flux_plugin_arg_destroy (args);
    return -1;
}

int jobtap_call_early (struct manager *jm, struct job *job,
                       const char *topic, json_t *jobspec,
                       flux_error_t *error)
{
    struct jobtap *jt = jm->jobtap;
    flux_plugin_arg_t *args;
    int rc = -1;

    if (!has_handler (jt, topic))
        return 0;
    if (!(args = jobtap_args (job))
        || (jobspec
            && flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_IN,
                                     "{s:O}", "jobspec", jobspec) < 0))
        set_error (error, "%s: cannot call", topic);
    else if ((rc = jobtap_stack_call (jt, jt->plugins, jt->nplugins,
                                      job, topic, args)) < 0) {
        jobtap_errmsg (args, "rejected by job-manager plugin", error);
        errno = EINVAL;
    }
    flux_plugin_arg_destroy (args);
    return rc;
}

int jobtap_get_priority (struct manager *jm, struct job *job,
                         int64_t *priority)
{
    struct jobtap *jt = jm->jobtap;
    flux_plugin_arg_t *args;
    int rc;

    *priority = PRIORITY_UNAVAIL;
    if (!(args = jobtap_args (job)))
        return -1;
    rc = jobtap_stack_call (jt, jt->plugins, jt->nplugins, job,
                            "job.priority.get", args);
    if (rc > 0
        && flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_OUT, "{s?I}",
                                   "priority", priority) < 0)
        rc = -1;
    if (rc < 0)
        flux_log (jm->h, LOG_ERR, "jobtap: job.priority.get: %s: failed",
                  idf58 (job->id));
    else if (rc > 0 && *priority < 0) {
        if (job->state == FLUX_JOB_STATE_SCHED)
            flux_log (jm->h, LOG_ERR,
                      "jobtap: %s: job.priority.get has given no priority",
                      idf58 (job->id));
        *priority = job->priority; // no change
    }
    flux_plugin_arg_destroy (args);
    return rc;
}

int jobtap_notify (struct manager *jm, struct job *job, const char *name,
                   json_t *entry)
{
    flux_plugin_arg_t *args;
    char topic[128];
    int rc = -1;

    if (job->nsubscribers == 0)
        return 0;
    snprintf (topic, sizeof (topic), "job.event.%s", name);
    if ((args = jobtap_args (job))
        && flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_IN,
                                 "{s:O}", "entry", entry) == 0)
        rc = jobtap_stack_call (jm->jobtap, job->subscribers,
                                job->nsubscribers, job, topic, args);
    flux_plugin_arg_destroy (args);
    return rc;
}

static int check_dependency (struct jobtap *jt, flux_plugin_t *p,
                             struct job *job, flux_plugin_arg_t *args,
                             int index, json_t *dep, flux_error_t *error)
{
    char topic[128];
    const char *scheme;
    int rc;

    if (json_unpack (dep, "{s:s}", "scheme", &scheme) < 0)
        return set_error (error, "dependency %d has no scheme",
                          index);
    if ((size_t)snprintf (topic, sizeof (topic), "job.dependency.%s", scheme)
        >= sizeof (topic))
        return set_error (error, "dependency %d: too long a scheme", index);
    if (p && !flux_plugin_match_handler (p, topic))
        return 0;
    if (flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_IN,
                              "{s:O}", "dependency", dep) < 0
        || flux_plugin_arg_set (args, FLUX_PLUGIN_ARG_OUT, "{}") < 0)
        return set_error (error, "cannot call plugins");
    if (p)
        rc = jobtap_stack_call (jt, &p, 1, job, topic, args);
    else
        rc = jobtap_stack_call (jt, jt->plugins, jt->nplugins, job,
                                topic, args);
    if (rc == 0)
        return set_error (error, "dependency scheme \"%s\" not supported",
                          scheme);
    if (rc < 0)
        jobtap_errmsg (args, "a plugin has refused the dependency",
                       error);
    return rc;
}

int jobtap_dependencies_each (struct jobtap *jt, flux_plugin_t *p,
                              struct job *job, bool raise,
                              flux_error_t *error)
{
    json_t *deps = jp_get (job->jobspec, "attributes.system.dependencies");
    flux_plugin_arg_t *args;
    size_t index;
    json_t *dep;
    int rc = 0;

    if (!deps)
        return 0;
    if (!json_is_array (deps))
        return set_error (error, "dependencies are not an array");
    if (!(args = jobtap_args (job)))
        return set_error (error, "cannot call plugins");
    json_array_foreach (deps, index, dep) {
        if (check_dependency (jt, p, job, args, index, dep, error) >= 0)
            continue;
        if (!raise) {
            rc = -1;
            break;
        }
        raise_note (jt->jm, job, "dependency",
                    "%s (nothing may resolve it)", error->text);
    }
    flux_plugin_arg_destroy (args);
    return rc;
}

int jobtap_check_dependencies (struct manager *jm, struct job *job,
                               bool raise, flux_error_t *error)
{
    return jobtap_dependencies_each (jm->jobtap, NULL, job, raise, error);
}

int jobtap_job_update (struct manager *jm, struct job *job,
                       struct flux_msg_cred cred, const char *key,
                       json_t *value, struct job_update *up,
                       flux_error_t *error)
{
    struct jobtap *jt = jm->jobtap;
    flux_plugin_arg_t *args;
    char topic[256];
    int validated = 0;
    int feasibility = 0;
    json_t *extra = NULL;
    int rc;

    snprintf (topic, sizeof (topic), "job.update.%s", key);
    if (!(args = jobtap_args (job))
        || flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_IN,
                                 "{s:{s:O} s:s s:O s:{s:I s:I}}",
                                 "updates",
                                   key, value,
                                 "key", key,
                                 "value", value,
                                 "cred",
                                   "rolemask", (json_int_t)cred.rolemask,
                                   "userid", (json_int_t)cred.userid) < 0) {
        flux_plugin_arg_destroy (args);
        return set_error (error, "cannot call plugins");
    }
    rc = jobtap_stack_call (jt, jt->plugins, jt->nplugins, job, topic, args);
    if (rc == 0)
        set_error (error, "update of %s not supported", key);
    else if (rc < 0)
        jobtap_errmsg (args, "a plugin has refused the update", error);
    else if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_OUT,
                                     "{s?i s?i s?o}",
                                     "validated", &validated,
                                     "feasibility", &feasibility,
                                     "updates", &extra) < 0)
        rc = set_error (error, "malformed output of job.update");
    else {
        // one that wants it is enough, since the whole is looked at
        up->validate = up->validate || !validated;
        up->feasibility = up->feasibility || feasibility;
        if (extra && !up->extra)
            up->extra = json_object ();
        if (extra)
            json_object_update (up->extra, extra);
    }
    flux_plugin_arg_destroy (args);
    if (rc <= 0) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

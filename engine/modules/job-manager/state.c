/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * RFC 21 as a pure function: what an event does to a job.  Used for new
 * events and for the replay of old ones alike.
 */
#include "manager.h"

static int on_submit (struct job *job, double t, json_t *context)
{
    if (job->state != FLUX_JOB_STATE_NEW) {
        errno = EINVAL;
        return -1;
    }
    job->t_submit = t;
    return json_unpack (context, "{s:i s:i s:i}",
                        "urgency", &job->urgency,
                        "userid", &job->userid,
                        "flags", &job->flags);
}

static int on_dependency (struct job *job, bool add, json_t *context)
{
    const char *desc;

    if (!(job->state & (FLUX_JOB_STATE_DEPEND | FLUX_JOB_STATE_NEW)))
        return 0;
    if (json_unpack (context, "{s:s}", "description", &desc) < 0)
        return -1;
    if (add) {
        if (json_object_get (job->deps, desc)) // once only
            return 0;
        return json_object_set_new (job->deps, desc, json_true ());
    }
    if (!json_is_true (json_object_get (job->deps, desc))) {
        errno = ENOENT;
        return -1;
    }
    return json_object_set_new (job->deps, desc, json_false ());
}

static int on_set_flags (struct job *job, json_t *context)
{
    json_t *flags = json_object_get (context, "flags");
    size_t index;
    json_t *val;

    if (!json_is_array (flags))
        return -1;
    json_array_foreach (flags, index, val) {
        const char *s = json_string_value (val);

        if (!s || job_set_flag (job, s, false) < 0)
            return -1;
    }
    return 0;
}

static void enter_cleanup (struct job *job, json_t *entry)
{
    if (!job->end_event)
        job->end_event = json_incref (entry);
    job->state = FLUX_JOB_STATE_CLEANUP;
}

static int on_exception (struct job *job, json_t *entry, json_t *context)
{
    int severity;
    const char *type;

    if (job->state & (FLUX_JOB_STATE_NEW | FLUX_JOB_STATE_INACTIVE))
        return 0;
    if (json_unpack (context, "{s:i s:s}",
                     "severity", &severity,
                     "type", &type) < 0)
        return -1;
    if (severity == 0) {
        if (streq (type, "scheduler-restart")) // allocation was lost
            job->has_resources = false;
        enter_cleanup (job, entry);
    }
    return 0;
}

static int on_perilog (struct job *job, const char *what)
{
    if (streq (what, "start"))
        job->perilog_active++;
    else if (streq (what, "finish")) {
        if (job->perilog_active > 0)
            job->perilog_active--;
    }
    else {
        errno = EPROTO;
        return -1;
    }
    return 0;
}

/* In SCHED, some events send the job back for a new priority. */
static void back_to_priority (struct job *job)
{
    if (job->state == FLUX_JOB_STATE_SCHED)
        job->state = FLUX_JOB_STATE_PRIORITY;
}

static int apply (struct job *job, json_t *entry, double t,
                  const char *name, json_t *context)
{
    if (streq (name, "submit"))
        return on_submit (job, t, context);
    if (streq (name, "validate")) {
        if (job->state != FLUX_JOB_STATE_NEW)
            return -1;
        job->state = FLUX_JOB_STATE_DEPEND;
    }
    else if (streq (name, "invalidate"))
        job->readonly = true;
    else if (streq (name, "jobspec-update")) {
        if (job_jobspec_update (job, context) < 0)
            return -1;
        back_to_priority (job);
    }
    else if (streq (name, "dependency-add"))
        return on_dependency (job, true, context);
    else if (streq (name, "dependency-remove"))
        return on_dependency (job, false, context);
    else if (streq (name, "set-flags"))
        return on_set_flags (job, context);
    else if (streq (name, "memo"))
        return job_annotate (job, "user", context);
    else if (streq (name, "depend")) {
        if (job->state == FLUX_JOB_STATE_DEPEND)
            job->state = FLUX_JOB_STATE_PRIORITY;
    }
    else if (streq (name, "priority")) {
        if (job->state & (FLUX_JOB_STATE_PRIORITY | FLUX_JOB_STATE_SCHED)) {
            if (json_unpack (context, "{s:I}", "priority", &job->priority) < 0)
                return -1;
            job->state = FLUX_JOB_STATE_SCHED;
        }
    }
    else if (streq (name, "urgency")) {
        if (json_unpack (context, "{s:i}", "urgency", &job->urgency) < 0)
            return -1;
        back_to_priority (job);
    }
    else if (streq (name, "flux-restart"))
        back_to_priority (job);
    else if (streq (name, "exception"))
        return on_exception (job, entry, context);
    else if (streq (name, "alloc")) {
        job->has_resources = true;
        if (job->state == FLUX_JOB_STATE_SCHED)
            job->state = FLUX_JOB_STATE_RUN;
    }
    else if (streq (name, "start"))
        job->started = true;
    else if (streq (name, "finish")) {
        if (job->state == FLUX_JOB_STATE_RUN)
            enter_cleanup (job, entry);
    }
    else if (streq (name, "free"))
        job->has_resources = false;
    else if (streq (name, "clean")) {
        if (job->state == FLUX_JOB_STATE_CLEANUP) {
            job->state = FLUX_JOB_STATE_INACTIVE;
            job->t_clean = t;
        }
    }
    else if (strstarts (name, "prolog-")) {
        if (!job->start_pending)
            return on_perilog (job, name + 7);
    }
    else if (strstarts (name, "epilog-")) {
        if (job->state == FLUX_JOB_STATE_CLEANUP)
            return on_perilog (job, name + 7);
    }
    return 0;
}

int job_apply_event (struct job *job, json_t *entry)
{
    double t;
    const char *name;
    json_t *context;

    if (entry_parse (entry, &t, &name, &context) < 0)
        return -1;
    errno = 0;
    if (apply (job, entry, t, name, context) < 0) {
        if (errno == 0)
            errno = EPROTO;
        return -1;
    }
    return json_object_set_new (job->posted, name, json_true ());
}

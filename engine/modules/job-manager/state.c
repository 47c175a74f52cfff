/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * RFC 21 as a table: what an event does to a job, and to which state it takes
 * a job from which.  Used for new events and for the replay of old ones alike.
 */
#include "manager.h"

#define NEW FLUX_JOB_STATE_NEW
#define DEPEND FLUX_JOB_STATE_DEPEND
#define PRIORITY FLUX_JOB_STATE_PRIORITY
#define SCHED FLUX_JOB_STATE_SCHED
#define RUN FLUX_JOB_STATE_RUN
#define CLEANUP FLUX_JOB_STATE_CLEANUP
#define INACTIVE FLUX_JOB_STATE_INACTIVE

struct event {
    json_t *entry;              // of the eventlog
    double t;
    const char *name;
    json_t *context;
};

static int wrong (int errnum)
{
    errno = errnum;
    return -1;
}

static int on_submit (struct job *job, const struct event *e)
{
    if (job->state != NEW)
        return wrong (EINVAL);
    job->t_submit = e->t;
    return json_unpack (e->context,
                        "{s:i s:i s:i}",
                        "flags", &job->flags,
                        "userid", &job->userid,
                        "urgency", &job->urgency);
}

static int on_validate (struct job *job, const struct event *e)
{
    return job->state == NEW ? 0 : -1;
}

static int on_invalidate (struct job *job, const struct event *e)
{
    job->readonly = true;
    return 0;
}

static int on_jobspec_update (struct job *job, const struct event *e)
{
    return job_jobspec_update (job, e->context);
}

/* deps: true until the dependency is removed, then false: a name counts once.
 */
static int on_dependency (struct job *job, const struct event *e)
{
    bool add = streq (e->name, "dependency-add");
    const char *name = json_string_value (json_object_get (e->context,
                                                           "description"));
    json_t *known;

    if (job->state != NEW && job->state != DEPEND)
        return 0;
    if (!name)
        return -1;
    known = json_object_get (job->deps, name);
    if (add && known)
        return 0;
    if (!add && !json_is_true (known))
        return wrong (ENOENT);
    return json_object_set_new (job->deps, name, json_boolean (add));
}

static int on_set_flags (struct job *job, const struct event *e)
{
    json_t *flags = json_object_get (e->context, "flags");

    if (!json_is_array (flags))
        return -1;
    for (size_t i = 0; i < json_array_size (flags); i++) {
        const char *flag = json_string_value (json_array_get (flags, i));

        if (!flag || job_set_flag (job, flag) < 0)
            return -1;
    }
    return 0;
}

static int on_memo (struct job *job, const struct event *e)
{
    return job_annotate (job, "user", e->context);
}

/* In SCHED the priority may change; the job stays there.
 */
static int on_priority (struct job *job, const struct event *e)
{
    if (job->state != PRIORITY && job->state != SCHED)
        return 0;
    return json_unpack (e->context, "{s:I}", "priority", &job->priority);
}

static int on_urgency (struct job *job, const struct event *e)
{
    return json_unpack (e->context, "{s:i}", "urgency", &job->urgency);
}

static void clean_up (struct job *job, const struct event *e)
{
    job->state = CLEANUP;
    if (!job->end_event)
        job->end_event = json_incref (e->entry);
}

static int on_exception (struct job *job, const struct event *e)
{
    const char *type;
    int severity;

    if (job->state == NEW || job->state == INACTIVE)
        return 0;
    if (json_unpack (e->context,
                     "{s:s s:i}",
                     "type", &type,
                     "severity", &severity) < 0)
        return -1;
    if (severity > 0)
        return 0;
    if (streq (type, "scheduler-restart")) // allocation was lost
        job->has_resources = false;
    clean_up (job, e);
    return 0;
}

static int on_alloc (struct job *job, const struct event *e)
{
    job->has_resources = true;
    return 0;
}

/* The expiration is the only part of R that can change.
 */
static int on_resource_update (struct job *job, const struct event *e)
{
    json_t *execution = json_object_get (job->R, "execution");
    json_t *expiration = json_object_get (e->context, "expiration");

    if (!execution
        || json_object_size (e->context) != 1
        || !json_is_number (expiration)
        || json_number_value (expiration) < 0.)
        return -1;
    return json_object_set (execution, "expiration", expiration);
}

static int on_start (struct job *job, const struct event *e)
{
    job->started = true;
    return 0;
}

static int on_finish (struct job *job, const struct event *e)
{
    if (job->state == RUN)
        clean_up (job, e);
    return 0;
}

static int on_free (struct job *job, const struct event *e)
{
    job->has_resources = false;
    return 0;
}

static int on_clean (struct job *job, const struct event *e)
{
    if (job->state == CLEANUP)
        job->t_clean = e->t;
    return 0;
}

/* A prolog counts until the job starts, an epilog once it cleans up.
 */
static int on_perilog (struct job *job, const struct event *e)
{
    bool counts = e->name[0] == 'p' ? !job->start_pending
                                    : job->state == CLEANUP;
    const char *what = strchr (e->name, '-') + 1;

    if (!counts)
        return 0;
    if (streq (what, "start"))
        job->perilog_active++;
    else if (!streq (what, "finish"))
        return wrong (EPROTO);
    else if (job->perilog_active > 0)
        job->perilog_active--;
    return 0;
}

/* A name that ends in a hyphen stands for all that begin with it.
 */
static const struct rule {
    const char *name;
    int (*effect) (struct job *job, const struct event *e);
    flux_job_state_t from;
    flux_job_state_t to;
} rules[] = {
    { "submit", on_submit, 0, 0 },
    { "validate", on_validate, NEW, DEPEND },
    { "invalidate", on_invalidate, 0, 0 },
    { "jobspec-update", on_jobspec_update, SCHED, PRIORITY },
    { "dependency-add", on_dependency, 0, 0 },
    { "dependency-remove", on_dependency, 0, 0 },
    { "set-flags", on_set_flags, 0, 0 },
    { "memo", on_memo, 0, 0 },
    { "depend", NULL, DEPEND, PRIORITY },
    { "priority", on_priority, PRIORITY, SCHED },
    { "urgency", on_urgency, SCHED, PRIORITY },
    { "flux-restart", NULL, SCHED, PRIORITY },
    { "exception", on_exception, 0, 0 },
    { "alloc", on_alloc, SCHED, RUN },
    { "resource-update", on_resource_update, 0, 0 },
    { "start", on_start, 0, 0 },
    { "finish", on_finish, 0, 0 },
    { "free", on_free, 0, 0 },
    { "clean", on_clean, CLEANUP, INACTIVE },
    { "prolog-", on_perilog, 0, 0 },
    { "epilog-", on_perilog, 0, 0 },
};

/* Events that have no rule change nothing.
 */
static const struct rule *find_rule (const char *name)
{
    for (size_t i = 0; i < sizeof (rules) / sizeof (rules[0]); i++) {
        size_t len = strlen (rules[i].name);

        if (strncmp (name, rules[i].name, len) == 0
            && (name[len] == '\0' || name[len - 1] == '-'))
            return &rules[i];
    }
    return NULL;
}

int job_apply_event (struct job *job, json_t *entry)
{
    struct event e = { .entry = entry };
    const struct rule *rule;

    if (entry_parse (entry, &e.t, &e.name, &e.context) < 0)
        return -1;
    if ((rule = find_rule (e.name))) {
        errno = 0;
        if (rule->effect && rule->effect (job, &e) < 0) {
            if (errno == 0)
                errno = EPROTO;
            return -1;
        }
        if (rule->from && job->state == rule->from)
            job->state = rule->to;
    }
    return json_object_set_new (job->posted, e.name, json_true ());
}

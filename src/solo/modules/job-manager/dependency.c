/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Dependencies (RFC 26) on other jobs, afterstart, afterany, afterok,
 * afternotok and afterexcept, and on the time, begin-time.
 */
#include <math.h>

#include "manager.h"

enum after_type { // bits
    AFTER_START = 1,
    AFTER_ANY = 2,
    AFTER_OK = 4,
    AFTER_NOTOK = 8,
    AFTER_EXCEPT = 16,
};

static const struct {
    const char *scheme;
    enum after_type type;
    const char *prefix; // of the description
} schemes[] = {
    { "after", AFTER_START, "after-start" }, // old name
    { "afterstart", AFTER_START, "after-start" },
    { "afterany", AFTER_ANY, "after-finish" },
    { "afterok", AFTER_OK, "after-success" },
    { "afternotok", AFTER_NOTOK, "after-failure" },
    { "afterexcept", AFTER_EXCEPT, "after-except" },
};

/* Hangs on the job that is waited for. */
struct after {
    struct after *next;
    flux_jobid_t id; // of the job that waits
    enum after_type type;
    char description[96];
};

static void after_free (void *arg)
{
    struct after *a = arg;

    while (a) {
        struct after *next = a->next;

        free (a);
        a = next;
    }
}

/* What the end of a job does to jobs that wait for it, as a set of types.
 * A job that never ran counts for afterany only.
 */
static int types_satisfied (struct job *job)
{
    const char *name = "";
    int types = AFTER_ANY;
    int status = -1;

    if (!json_object_get (job->posted, "alloc"))
        return types;
    (void)json_unpack (job->end_event, "{s:s s:{s?i}}",
                       "name", &name,
                       "context", "status", &status);
    if (json_object_get (job->posted, "start"))
        types |= AFTER_START;
    if (streq (name, "finish") && status == 0)
        return types | AFTER_OK;
    types |= AFTER_NOTOK;
    return streq (name, "exception") ? types | AFTER_EXCEPT : types;
}

static int reject_never (flux_plugin_t *p, flux_plugin_arg_t *args,
                         struct job *target, enum after_type type,
                         const char *value)
{
    const char *fmt = "dependency: afterexcept: job %s: no exception";

    if (!json_object_get (target->posted, "alloc") || type == AFTER_START)
        fmt = "dependency: after: %s never started";
    else if (type == AFTER_OK)
        fmt = "dependency: afterok: job %s failed or was canceled";
    else if (type == AFTER_NOTOK)
        fmt = "dependency: afternotok: job %s succeeded";
    return flux_jobtap_reject_job (p, args, fmt, value);
}

static struct after *after_new (flux_plugin_t *p, struct job *target,
                                flux_jobid_t id, enum after_type type,
                                const char *description)
{
    struct after *head = flux_jobtap_job_aux_get (p, target->id, "after");
    struct after *a;

    if (!(a = calloc (1, sizeof (*a))))
        return NULL;
    a->id = id;
    a->type = type;
    snprintf (a->description, sizeof (a->description), "%s", description);
    if (head) {
        a->next = head->next;
        head->next = a;
    }
    else if (flux_jobtap_job_aux_set (p, target->id, "after", a,
                                      after_free) < 0
             || flux_jobtap_job_subscribe (p, target->id) < 0)
        return NULL;
    return a;
}

static int after_cb (flux_plugin_t *p, const char *topic,
                     flux_plugin_arg_t *args, void *arg)
{
    struct manager *jm = jobtap_manager (p);
    size_t count = sizeof (schemes) / sizeof (schemes[0]);
    char description[96];
    const char *scheme;
    const char *value;
    flux_jobid_t id;
    flux_jobid_t target_id;
    uint32_t userid;
    struct job *target;
    enum after_type type;
    size_t i;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:I s:i s:{s:s s:s}}",
                                "id", &id,
                                "userid", &userid,
                                "dependency",
                                  "scheme", &scheme,
                                  "value", &value) < 0)
        return flux_jobtap_reject_job (p, args, "dependency: after: %s",
                                       flux_plugin_arg_strerror (args));
    for (i = 0; i < count && !streq (schemes[i].scheme, scheme); i++)
        ;
    if (i == count)
        return flux_jobtap_reject_job (p, args,
                                       "dependency scheme \"%s\" not "
                                       "supported", scheme);
    if (streq (scheme, "after"))
        (void)flux_jobtap_raise_exception (p, id, "dependency", 3,
                                           "dependency scheme 'after' is "
                                           "deprecated, use 'afterstart'");
    type = schemes[i].type;
    if (flux_job_id_parse (value, &target_id) < 0
        || target_id == FLUX_JOBTAP_CURRENT_JOB)
        return flux_jobtap_reject_job (p, args, "dependency: %s: \"%s\" is "
                                       "not a valid jobid", scheme, value);
    if (!(target = job_find (jm, target_id)))
        return flux_jobtap_reject_job (p, args, "dependency: %s: id %s: "
                                       "job not found", scheme, value);
    if (target->userid != userid)
        return flux_jobtap_reject_job (p, args, "%s: Permission denied for "
                                       "job %s", scheme, value);
    snprintf (description, sizeof (description), "%s=%s",
              schemes[i].prefix, value);
    if (flux_jobtap_dependency_add (p, id, description) < 0)
        return flux_jobtap_reject_job (p, args,
                                       "Unable to add job dependency");
    if (target->state == FLUX_JOB_STATE_INACTIVE
        && !(types_satisfied (target) & type))
        return reject_never (p, args, target, type, value);
    if (target->state == FLUX_JOB_STATE_INACTIVE
        || (type == AFTER_START
            && json_object_get (target->posted, "start")))
        return flux_jobtap_dependency_remove (p, id, description);
    if (!after_new (p, target, id, type, description))
        return flux_jobtap_reject_job (p, args,
                                       "failed to establish job dependency");
    return 0;
}

/* Those whose time has come leave the list; with 'final' the others hear
 * that theirs never will.
 */
static void settle (flux_plugin_t *p, struct job *target, int types,
                    bool final)
{
    struct manager *jm = jobtap_manager (p);
    const char *never = json_object_get (target->posted, "alloc")
        ? "can never be satisfied" : "job never started";
    struct after *a = flux_jobtap_job_aux_get (p, target->id, "after");

    for (; a; a = a->next) {
        struct job *job = idmap_get (jm->active, a->id);

        if (a->type == 0 // done
            || !job || job->state != FLUX_JOB_STATE_DEPEND
            || !json_is_true (json_object_get (job->deps, a->description)))
            continue;
        if (a->type & types) {
            a->type = 0;
            (void)flux_jobtap_dependency_remove (p, a->id, a->description);
        }
        else if (final)
            (void)flux_jobtap_raise_exception (p, a->id, "dependency", 0,
                                               "dependency %s %s",
                                               a->description, never);
    }
}

static struct job *current_job (flux_plugin_t *p, flux_plugin_arg_t *args)
{
    flux_jobid_t id;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:I}", "id", &id) < 0)
        return NULL;
    return job_find (jobtap_manager (p), id);
}

static int start_cb (flux_plugin_t *p, const char *topic,
                     flux_plugin_arg_t *args, void *arg)
{
    struct job *job = current_job (p, args);

    if (job)
        settle (p, job, AFTER_START, false);
    return 0;
}

static int inactive_cb (flux_plugin_t *p, const char *topic,
                        flux_plugin_arg_t *args, void *arg)
{
    struct job *job = current_job (p, args);

    if (job)
        settle (p, job, types_satisfied (job), true);
    return 0;
}

int dependency_after_plugin_init (flux_plugin_t *p)
{
    static const struct flux_plugin_handler tab[] = {
        { "job.dependency.after*", after_cb, NULL },
        { "job.event.start", start_cb, NULL },
        { "job.state.inactive", inactive_cb, NULL },
        { 0 },
    };

    return flux_plugin_register (p, ".dependency-after", tab);
}

struct begin_time {
    flux_plugin_t *p;
    flux_watcher_t *w;
    flux_jobid_t id;
    char description[64];
};

static void begin_time_free (void *arg)
{
    struct begin_time *b = arg;

    flux_watcher_destroy (b->w);
    free (b);
}

static void begin_time_cb (flux_reactor_t *r, flux_watcher_t *w,
                           int revents, void *arg)
{
    struct begin_time *b = arg;

    if (flux_jobtap_dependency_remove (b->p, b->id, b->description) < 0)
        flux_log_error (flux_jobtap_get_flux (b->p), "begin-time");
    (void)flux_jobtap_job_aux_delete_value (b->p, b->id, b);
}

static int depend_time_cb (flux_plugin_t *p, const char *topic,
                           flux_plugin_arg_t *args, void *arg)
{
    flux_reactor_t *r = flux_get_reactor (flux_jobtap_get_flux (p));
    struct begin_time *b;
    flux_jobid_t id;
    const char *s;
    char *end;
    double t;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:I s:{s:s}}",
                                "id", &id,
                                "dependency", "value", &s) < 0)
        return flux_jobtap_reject_job (p, args,
                                       "error processing begin-time: %s",
                                       flux_plugin_arg_strerror (args));
    t = strtod (s, &end);
    if (end == s || *end != '\0' || !isfinite (t) || t < 0.)
        return flux_jobtap_reject_job (p, args, "Invalid begin-time=%s", s);
    if (!(b = calloc (1, sizeof (*b))))
        goto error;
    b->p = p;
    b->id = id;
    snprintf (b->description, sizeof (b->description), "begin-time=%.3f", t);
    // wall clock time, whatever is done to the clock
    if (!(b->w = flux_periodic_watcher_create (r, t, 0., NULL,
                                               begin_time_cb, b))
        || flux_jobtap_dependency_add (p, id, b->description) < 0
        || flux_jobtap_job_aux_set (p, id, "begin-time", b,
                                    begin_time_free) < 0) {
        begin_time_free (b);
        goto error;
    }
    flux_watcher_start (b->w);
    return 0;
error:
    return flux_jobtap_reject_job (p, args, "Unable to initialize begin-time");
}

int begin_time_plugin_init (flux_plugin_t *p)
{
    return flux_plugin_add_handler (p, "job.dependency.begin-time",
                                    depend_time_cb, NULL);
}

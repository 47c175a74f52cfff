/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What events, jobspec and R say about a job, as attributes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <flux/hostlist.h>
#include <flux/idset.h>

#include "job-list.h"

struct job *job_create (flux_jobid_t id)
{
    struct job *job;

    if (!(job = calloc (1, sizeof (*job))))
        return NULL;
    job->id = id;
    job->state = job->states_mask = FLUX_JOB_STATE_NEW;
    if (!(job->attrs = json_pack ("{s:i}", "state", job->state))) {
        free (job);
        return NULL;
    }
    return job;
}

void job_destroy (struct job *job)
{
    if (job) {
        json_decref (job->attrs);
        json_decref (job->jobspec);
        json_decref (job->R);
        json_decref (job->exception);
        free (job);
    }
}

static void set (struct job *job, const char *key, json_t *val)
{
    if (val)
        (void)json_object_set_new (job->attrs, key, val);
    else
        (void)json_object_del (job->attrs, key);
}

static void set_state (struct job *job, int state, const char *key, double t)
{
    if (job->state == state)
        return;
    job->state = state;
    job->states_mask |= state;
    set (job, "state", json_integer (state));
    if (!json_object_get (job->attrs, key)) // the first time counts
        set (job, key, json_real (t));
}

struct counts {
    int nodes;
    int slots;
    int cores;
    bool exclusive;
};

/* Products of the counts along each path from the top */
static void count_resources (json_t *vertices, int factor, struct counts *c)
{
    size_t index;
    json_t *v;

    json_array_foreach (vertices, index, v) {
        json_t *count = json_object_get (v, "count");
        const char *type = json_string_value (json_object_get (v, "type"));
        int n = factor;

        if (json_is_object (count))
            count = json_object_get (count, "min");
        n *= json_is_integer (count) ? json_integer_value (count) : 1;
        if (type && streq (type, "node"))
            c->nodes += n;
        else if (type && streq (type, "slot"))
            c->slots += n;
        else if (type && streq (type, "core"))
            c->cores += n;
        if (json_is_true (json_object_get (v, "exclusive")))
            c->exclusive = true;
        count_resources (json_object_get (v, "with"), n, c);
    }
}

static int count_tasks (struct job *job, struct counts *c)
{
    json_t *per = jp_get (job->jobspec,
                          "attributes.system.shell.options.per-resource");
    const char *type;
    int n = 1;

    if (per && json_unpack (per, "{s:s s?i}", "type", &type, "count", &n) == 0)
        return n * (streq (type, "node") ? c->nodes : c->cores);
    if (json_unpack (job->jobspec, "{s:[{s:{s:i}}]}",
                     "tasks", "count", "total", &n) == 0)
        return n;
    return c->slots;
}

static const char *job_name (struct job *job)
{
    json_t *name = jp_get (job->jobspec, "attributes.system.job.name");
    json_t *tasks = json_object_get (job->jobspec, "tasks");
    json_t *command;
    const char *arg0;
    const char *slash;

    if (name)
        return json_string_value (name);
    command = json_object_get (json_array_get (tasks, 0), "command");
    if (!(arg0 = json_string_value (json_array_get (command, 0))))
        return NULL;
    slash = strrchr (arg0, '/');
    return slash && slash[1] ? slash + 1 : arg0;
}

static void parse_jobspec (struct job *job)
{
    static const char *strings[] = { "cwd", "queue", "project", "bank", NULL };
    json_t *system = jp_get (job->jobspec, "attributes.system");
    json_t *val = json_object_get (system, "duration");
    struct counts c = { 0 };
    const char *name = job_name (job);

    for (const char **key = strings; *key; key++)
        set (job, *key, json_incref (json_object_get (system, *key)));
    if (json_is_number (val))
        set (job, "duration", json_real (json_number_value (val)));
    set (job, "name", name ? json_string (name) : NULL);
    count_resources (json_object_get (job->jobspec, "resources"), 1, &c);
    if (!job->R) { // else R knows better
        set (job, "nnodes", c.nodes > 0 ? json_integer (c.nodes) : NULL);
        set (job, "ncores", c.nodes > 0 && c.exclusive
                            ? NULL : json_integer (c.cores));
    }
    set (job, "ntasks", json_integer (count_tasks (job, &c)));
}

static int count_ids (json_t *children, const char *key)
{
    const char *s = json_string_value (json_object_get (children, key));
    struct idset *ids = s ? idset_decode (s) : NULL;
    int n = ids ? (int)idset_count (ids) : 0;

    idset_destroy (ids);
    return n;
}

static void parse_R (struct job *job)
{
    struct idset *ranks = idset_create (0, IDSET_FLAG_AUTOGROW);
    struct hostlist *hl = hostlist_create ();
    json_t *lite = jp_get (job->R, "execution.R_lite");
    json_t *hosts = jp_get (job->R, "execution.nodelist");
    json_t *expiration = jp_get (job->R, "execution.expiration");
    int ncores = 0;
    size_t index;
    json_t *o;
    char *s;

    json_array_foreach (lite, index, o) {
        const char *rank = json_string_value (json_object_get (o, "rank"));
        struct idset *ids = rank ? idset_decode (rank) : NULL;

        if (!ids)
            continue;
        ncores += idset_count (ids)
            * count_ids (json_object_get (o, "children"), "core");
        (void)idset_add (ranks, ids);
        idset_destroy (ids);
    }
    json_array_foreach (hosts, index, o) {
        if (json_is_string (o))
            (void)hostlist_append (hl, json_string_value (o));
    }
    set (job, "nnodes", json_integer (idset_count (ranks)));
    set (job, "ncores", json_integer (ncores));
    s = idset_encode (ranks, IDSET_FLAG_BRACKETS | IDSET_FLAG_RANGE);
    set (job, "ranks", s ? json_string (s) : NULL);
    free (s);
    s = hostlist_encode (hl);
    set (job, "nodelist", s ? json_string (s) : NULL);
    free (s);
    if (json_is_number (expiration))
        set (job, "expiration", json_real (json_number_value (expiration)));
    idset_destroy (ranks);
    hostlist_destroy (hl);
}

void job_set_data (struct job *job, json_t *jobspec, json_t *R)
{
    if (jobspec) {
        json_decref (job->jobspec);
        job->jobspec = json_incref (jobspec);
        parse_jobspec (job);
    }
    if (R) {
        json_decref (job->R);
        job->R = json_incref (R);
        parse_R (job);
    }
}

static void on_exception (struct job *job, json_t *context, double t)
{
    int severity;
    json_t *old = json_object_get (job->exception, "severity");

    if (json_unpack (context, "{s:i}", "severity", &severity) < 0)
        return;
    if (!old || severity < json_integer_value (old)) {
        json_decref (job->exception);
        job->exception = json_incref (context);
    }
    if (severity == 0)
        set_state (job, FLUX_JOB_STATE_CLEANUP, "t_cleanup", t);
}

static void on_clean (struct job *job, double t)
{
    json_t *status = json_object_get (job->attrs, "waitstatus");
    bool success = status && json_integer_value (status) == 0;
    int result = success ? FLUX_JOB_RESULT_COMPLETED : FLUX_JOB_RESULT_FAILED;
    const char *type = "";
    json_t *severity;
    json_t *note;

    set_state (job, FLUX_JOB_STATE_INACTIVE, "t_inactive", t);
    job->t_inactive = t;
    if (job->exception
        && json_unpack (job->exception, "{s:s s:o s?o}",
                        "type", &type,
                        "severity", &severity,
                        "note", &note) == 0) {
        set (job, "exception_type", json_string (type));
        set (job, "exception_severity", json_incref (severity));
        set (job, "exception_note", json_incref (note));
    }
    if (!success && streq (type, "cancel"))
        result = FLUX_JOB_RESULT_CANCELED;
    else if (!success && streq (type, "timeout"))
        result = FLUX_JOB_RESULT_TIMEOUT;
    set (job, "exception_occurred", json_boolean (job->exception != NULL));
    set (job, "success", json_boolean (success));
    set (job, "result", json_integer (result));
}

static void on_dependency (struct job *job, bool add, json_t *context)
{
    json_t *desc = json_object_get (context, "description");
    json_t *deps = json_object_get (job->attrs, "dependencies");
    size_t index;
    json_t *o;

    if (!deps) {
        set (job, "dependencies", json_array ());
        deps = json_object_get (job->attrs, "dependencies");
    }
    json_array_foreach (deps, index, o) {
        if (json_equal (o, desc)) {
            if (!add)
                (void)json_array_remove (deps, index);
            return;
        }
    }
    if (add)
        (void)json_array_append (deps, desc);
}

static void on_memo (struct job *job, json_t *context)
{
    json_t *notes = json_object_get (job->attrs, "annotations");
    json_t *patch = json_pack ("{s:O}", "user", context);

    // a copy: the object may be shared with the event it came in
    notes = notes ? json_deep_copy (notes) : json_object ();
    (void)jp_merge (notes, patch);
    json_decref (patch);
    if (json_object_size (notes) == 0) {
        json_decref (notes);
        notes = NULL;
    }
    set (job, "annotations", notes);
}

static void back_to_priority (struct job *job, double t)
{
    if (job->state == FLUX_JOB_STATE_SCHED)
        set_state (job, FLUX_JOB_STATE_PRIORITY, "t_priority", t);
}

int job_event (struct job *job, json_t *entry)
{
    const char *name;
    json_t *context;
    double t;
    json_t *val;

    if (entry_parse (entry, &t, &name, &context) < 0)
        return 0;
    if (streq (name, "invalidate"))
        return 1;
    if (streq (name, "submit")) {
        set (job, "t_submit", json_real (t));
        set (job, "userid", json_incref (json_object_get (context,
                                                          "userid")));
        set (job, "urgency", json_incref (json_object_get (context,
                                                           "urgency")));
    }
    else if (streq (name, "validate"))
        set_state (job, FLUX_JOB_STATE_DEPEND, "t_depend", t);
    else if (streq (name, "depend"))
        set_state (job, FLUX_JOB_STATE_PRIORITY, "t_priority", t);
    else if (streq (name, "priority")) {
        if ((val = json_object_get (context, "priority"))) {
            job->priority = json_integer_value (val);
            set (job, "priority", json_incref (val));
        }
        if (job->state == FLUX_JOB_STATE_PRIORITY)
            set_state (job, FLUX_JOB_STATE_SCHED, "t_sched", t);
    }
    else if (streq (name, "urgency")) {
        set (job, "urgency", json_incref (json_object_get (context,
                                                           "urgency")));
        back_to_priority (job, t);
    }
    else if (streq (name, "flux-restart"))
        back_to_priority (job, t);
    else if (streq (name, "alloc")) {
        if ((val = json_object_get (context, "annotations")))
            set (job, "annotations", json_incref (val));
        if (job->state == FLUX_JOB_STATE_SCHED) {
            set_state (job, FLUX_JOB_STATE_RUN, "t_run", t);
            job->t_run = t;
        }
    }
    else if (streq (name, "exception"))
        on_exception (job, context, t);
    else if (streq (name, "finish")) {
        set (job, "waitstatus", json_incref (json_object_get (context,
                                                              "status")));
        if (job->state == FLUX_JOB_STATE_RUN)
            set_state (job, FLUX_JOB_STATE_CLEANUP, "t_cleanup", t);
    }
    else if (streq (name, "clean"))
        on_clean (job, t);
    else if (streq (name, "annotations")) {
        val = json_object_get (context, "annotations");
        set (job, "annotations", json_is_object (val) ? json_incref (val)
                                                      : NULL);
    }
    else if (streq (name, "memo"))
        on_memo (job, context);
    else if (streq (name, "dependency-add"))
        on_dependency (job, true, context);
    else if (streq (name, "dependency-remove"))
        on_dependency (job, false, context);
    else if (streq (name, "jobspec-update")) {
        if (job->jobspec && jobspec_apply (job->jobspec, context) == 0)
            parse_jobspec (job);
        back_to_priority (job, t);
    }
    return 0;
}

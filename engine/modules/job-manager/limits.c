/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * .limit-job-size and .limit-duration: what [policy.limits] and
 * [queues.NAME.policy.limits] (RFC 33) say of how large a job may be and how
 * long.  What a queue says counts for its jobs, key by key.
 */
#include <limits.h>
#include <math.h>

#include "manager.h"

enum {
    UNSET = -2,
    UNLIMITED = -1,
};

struct size {
    int nnodes;
    int ncores;
    int ngpus;
};

struct limits {
    struct size max;
    struct size min;
    double duration;        // 0: unlimited, < 0: not set
};

/* The configuration has been looked at as a whole before it is used, and is
 * taken as it is for each job: with limits they are few.
 */
struct policy {
    struct limits general;
    json_t *queues;         // may be NULL
};

static int parse_size (json_t *policy, const char *path, struct size *size,
                       flux_error_t *error)
{
    json_t *o = jp_get (policy, path);
    json_error_t jerror;

    size->nnodes = size->ncores = size->ngpus = UNSET;
    if (!o)
        return 0;
    if (json_unpack_ex (o, &jerror, 0, "{s?i s?i s?i}",
                        "nnodes", &size->nnodes,
                        "ncores", &size->ncores,
                        "ngpus", &size->ngpus) < 0)
        return set_error (error, "%s: %s", path, jerror.text);
    // nobody else writes UNSET
    if ((size->nnodes < UNLIMITED && json_object_get (o, "nnodes"))
        || (size->ncores < UNLIMITED && json_object_get (o, "ncores"))
        || (size->ngpus < UNLIMITED && json_object_get (o, "ngpus")))
        return set_error (error, "%s: size must be -1 (unlimited) or more",
                          path);
    return 0;
}

static int parse_limits (json_t *table, struct limits *limits,
                         flux_error_t *error)
{
    static const char *path = "policy.limits.duration";
    json_t *o = jp_get (table, "policy.limits");

    if (o && !json_is_object (o))
        return set_error (error, "policy.limits: must be a table");
    o = jp_get (table, "policy.limits.job-size");
    if (o && !json_is_object (o))
        return set_error (error, "policy.limits.job-size: must be a table");
    if (parse_size (table, "policy.limits.job-size.max",
                    &limits->max, error) < 0
        || parse_size (table, "policy.limits.job-size.min",
                       &limits->min, error) < 0)
        return -1;
    limits->duration = UNSET;
    if ((o = jp_get (table, path))
        && (!json_is_string (o)
            || parse_duration (json_string_value (o),
                               &limits->duration) < 0))
        return set_error (error, "%s: invalid duration", path);
    return 0;
}

static int conf_update_cb (flux_plugin_t *p, const char *topic,
                           flux_plugin_arg_t *args, void *arg)
{
    struct policy *policy = arg;
    struct limits general;
    struct limits limits;
    flux_error_t error;
    json_t *conf;
    const char *name;
    json_t *queue;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:o}", "conf", &conf) < 0)
        return flux_jobtap_error (p, args, "limits: no configuration");
    if (parse_limits (conf, &general, &error) < 0)
        return flux_jobtap_error (p, args, "%s", error.text);
    json_object_foreach (json_object_get (conf, "queues"), name, queue) {
        if (parse_limits (queue, &limits, &error) < 0)
            return flux_jobtap_error (p, args, "queues.%s.%s",
                                      name, error.text);
    }
    policy->general = general;
    json_decref (policy->queues);
    policy->queues = json_incref (json_object_get (conf, "queues"));
    return 0;
}

static void override_size (struct size *size, const struct size *by)
{
    if (by->nnodes != UNSET)
        size->nnodes = by->nnodes;
    if (by->ncores != UNSET)
        size->ncores = by->ncores;
    if (by->ngpus != UNSET)
        size->ngpus = by->ngpus;
}

static void limits_of (struct policy *policy, const char *queue,
                       struct limits *limits)
{
    json_t *table = json_object_get (policy->queues, queue);
    struct limits own;

    *limits = policy->general;
    if (!table || parse_limits (table, &own, NULL) < 0)
        return;
    override_size (&limits->max, &own.max);
    override_size (&limits->min, &own.min);
    if (own.duration >= 0.)
        limits->duration = own.duration;
}

/* What a job asks for.  Slots are those of all nodes. */
struct counts {
    json_int_t nodes;
    json_int_t slots;
    json_int_t cores;       // per slot
    json_int_t gpus;
};

static int count (json_t *resources, json_int_t factor, struct counts *c,
                  flux_error_t *error)
{
    size_t index;
    json_t *o;

    json_array_foreach (resources, index, o) {
        const char *type = json_string_value (json_object_get (o, "type"));
        json_t *value = json_object_get (o, "count");
        json_int_t n = json_integer_value (value);

        if (!type || !json_is_integer (value))
            return set_error (error, "a limit on the size of jobs is set, but"
                              " the count of '%.60s' is no number",
                              type ? type : "");
        if (n < 1 || n > INT_MAX || factor > INT_MAX / n)
            return set_error (error, "invalid count for type '%.60s'", type);
        if (streq (type, "node"))
            c->nodes = factor * n;
        else if (streq (type, "slot"))
            c->slots = n;
        else if (streq (type, "core"))
            c->cores = n;
        else if (streq (type, "gpu"))
            c->gpus = n;
        // a rabbit's own cores are not the job's
        if (!streq (type, "storage_node")
            && count (json_object_get (o, "with"), factor * n, c, error) < 0)
            return -1;
    }
    return 0;
}

static int check (const char *queue, const char *what, json_int_t value,
                  int min, int max, flux_error_t *error)
{
    bool over = max >= 0 && value > max;

    if (!over && (min < 0 || value >= min))
        return 0;
    return set_error (error, "requested %s (%lld) %s policy limit of %d%s%s",
                      what,
                      (long long)value,
                      over ? "exceeds" : "is under",
                      over ? max : min,
                      queue ? " for queue " : "",
                      queue ? queue : "");
}

static bool size_is_set (const struct size *size)
{
    return size->nnodes >= 0 || size->ncores >= 0 || size->ngpus >= 0;
}

static int check_size (const struct limits *limits, json_t *jobspec,
                       const char *queue, flux_error_t *error)
{
    const struct size *max = &limits->max;
    const struct size *min = &limits->min;
    struct counts c = { 0 };
    json_int_t slots;

    if (!size_is_set (max) && !size_is_set (min))
        return 0;
    if (count (json_object_get (jobspec, "resources"), 1, &c, error) < 0)
        return -1;
    slots = c.nodes ? c.nodes * c.slots : c.slots;
    if (check (queue, "nnodes", c.nodes, UNSET, max->nnodes, error) < 0
        || check (queue, "ncores", slots * c.cores, UNSET, max->ncores,
                  error) < 0
        || check (queue, "ngpus", slots * c.gpus, UNSET, max->ngpus,
                  error) < 0
        || check (queue, "nnodes", c.nodes, min->nnodes, UNSET, error) < 0
        || check (queue, "ncores", slots * c.cores, min->ncores, UNSET,
                  error) < 0
        || check (queue, "ngpus", slots * c.gpus, min->ngpus, UNSET,
                  error) < 0)
        return -1;
    return 0;
}

static void format_duration (char *buf, size_t size, double d)
{
    if (d < 60.)
        snprintf (buf, size, "%.2gs", d);
    else if (d < 3600.)
        snprintf (buf, size, "%.2gm", d / 60.);
    else if (d < 86400.)
        snprintf (buf, size, "%.2gh", d / 3600.);
    else
        snprintf (buf, size, "%.2gd", d / 86400.);
}

static int check_duration (const struct limits *limits, json_t *jobspec,
                           const char *queue, flux_error_t *error)
{
    json_t *o = jp_get (jobspec, "attributes.system.duration");
    double duration = json_number_value (o);
    char requested[32] = "unlimited";
    char limit[32];

    if (limits->duration <= 0. || isinf (limits->duration)
        || (duration > 0. && duration <= limits->duration))
        return 0;
    if (duration > 0.)
        format_duration (requested, sizeof (requested), duration);
    format_duration (limit, sizeof (limit), limits->duration);
    return set_error (error, "requested duration (%s) exceeds policy limit of"
                      " %s%s%s",
                      requested,
                      limit,
                      queue ? " for queue " : "",
                      queue ? queue : "");
}

typedef int (*check_f) (const struct limits *limits, json_t *jobspec,
                        const char *queue, flux_error_t *error);

static int validate (flux_plugin_t *p, flux_plugin_arg_t *args,
                     struct policy *policy, check_f check_job)
{
    struct limits limits;
    flux_error_t error;
    json_t *jobspec;
    const char *queue;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:o}", "jobspec", &jobspec) < 0)
        return flux_jobtap_error (p, args, "limits: no jobspec");
    queue = json_string_value (jp_get (jobspec, "attributes.system.queue"));
    limits_of (policy, queue, &limits);
    if (check_job (&limits, jobspec, queue, &error) < 0)
        return flux_jobtap_reject_job (p, args, "%s", error.text);
    return 0;
}

static int size_cb (flux_plugin_t *p, const char *topic,
                    flux_plugin_arg_t *args, void *arg)
{
    return validate (p, args, arg, check_size);
}

static int duration_cb (flux_plugin_t *p, const char *topic,
                        flux_plugin_arg_t *args, void *arg)
{
    return validate (p, args, arg, check_duration);
}

static void policy_destroy (void *arg)
{
    struct policy *policy = arg;

    json_decref (policy->queues);
    free (policy);
}

static int init (flux_plugin_t *p, flux_plugin_f validate_cb)
{
    struct policy *policy;

    if (!(policy = calloc (1, sizeof (*policy))))
        return -1;
    policy->general.duration = UNSET;
    policy->general.max = policy->general.min
        = (struct size) { UNSET, UNSET, UNSET };
    if (flux_plugin_aux_set (p, "limits", policy, policy_destroy) < 0) {
        policy_destroy (policy);
        return -1;
    }
    if (flux_plugin_add_handler (p, "job.validate", validate_cb, policy) < 0
        || flux_plugin_add_handler (p, "conf.update", conf_update_cb,
                                    policy) < 0)
        return -1;
    return 0;
}

int limit_job_size_plugin_init (flux_plugin_t *p)
{
    return init (p, size_cb);
}

int limit_duration_plugin_init (flux_plugin_t *p)
{
    return init (p, duration_cb);
}

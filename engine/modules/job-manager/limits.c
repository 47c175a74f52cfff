/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * .limit-job-size and .limit-duration: the limits of [policy.limits] and
 * [queues.NAME.policy.limits] (RFC 33) on the size and duration of jobs.  The
 * key of a queue overrides the general key for the jobs of that queue.
 */
#include <limits.h>
#include <math.h>

#include "manager.h"

#define DURATION "policy.limits.duration"

static const char *const dimensions[] = { "nnodes", "ncores", "ngpus" };

struct conf {
    json_t *o;          // checked
};

/* Check a table that may have policy.limits. */
static int check_table (json_t *table, flux_error_t *error)
{
    static const char *const tables[] = {
        "policy.limits", "policy.limits.job-size",
        "policy.limits.job-size.max", "policy.limits.job-size.min",
    };
    json_t *o;
    double d;

    for (int i = 0; i < 4; i++) {
        if (!(o = jp_get (table, tables[i])))
            continue;
        if (!json_is_object (o))
            return set_error (error, "%s: must be a table", tables[i]);
        for (int j = 0; i >= 2 && j < 3; j++) {
            json_t *n = json_object_get (o, dimensions[j]);
            if (n && (!json_is_integer (n) || json_integer_value (n) < -1))
                return set_error (error, "%s.%s: must be a number, or -1"
                                  " (unlimited)", tables[i], dimensions[j]);
        }
    }
    if ((o = jp_get (table, DURATION))
        && (!json_is_string (o)
            || parse_duration (json_string_value (o), &d) < 0))
        return set_error (error, DURATION ": invalid duration");
    return 0;
}

static int conf_update_cb (flux_plugin_t *p, const char *topic,
                           flux_plugin_arg_t *args, void *arg)
{
    struct conf *conf = arg;
    flux_error_t error;
    json_t *o, *queue;
    const char *name;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:o}", "conf", &o) < 0)
        return flux_jobtap_error (p, args, "limits: no configuration");
    if (check_table (o, &error) < 0)
        return flux_jobtap_error (p, args, "%s", error.text);
    json_object_foreach (json_object_get (o, "queues"), name, queue) {
        if (check_table (queue, &error) < 0)
            return flux_jobtap_error (p, args, "queues.%s.%s",
                                      name, error.text);
    }
    json_decref (conf->o);
    conf->o = json_incref (o);
    return 0;
}

/* The value of a key for jobs of a queue, or NULL. */
static json_t *lookup (struct conf *conf, const char *queue, const char *key)
{
    json_t *table = queue ? json_object_get (json_object_get (conf->o, "queues"),
                                             queue) : NULL;
    json_t *o = table ? jp_get (table, key) : NULL;

    return o ? o : jp_get (conf->o, key);
}

/* Size.  'counts' has the nodes, then cores and GPUs of a slot. */

static int count (json_t *resources, json_int_t factor, json_int_t counts[3],
                  json_int_t *slots, flux_error_t *error)
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
            counts[0] = factor * n;
        else if (streq (type, "slot"))
            *slots = n;
        else if (streq (type, "core"))
            counts[1] = n;
        else if (streq (type, "gpu"))
            counts[2] = n;
        // the job does not get the cores of a rabbit
        if (!streq (type, "storage_node")
            && count (json_object_get (o, "with"), factor * n, counts, slots,
                      error) < 0)
            return -1;
    }
    return 0;
}

static int check_size (struct conf *conf, json_t *jobspec, const char *queue,
                       flux_error_t *error)
{
    json_int_t counts[3] = { 0 };
    json_int_t slots = 0;
    bool counted = false;
    char key[64];

    for (int i = 0; i < 6; i++) {
        const char *dimension = dimensions[i % 3];
        bool is_max = i < 3;
        json_t *o;
        int limit;

        snprintf (key, sizeof (key), "policy.limits.job-size.%s.%s",
                  is_max ? "max" : "min", dimension);
        if (!(o = lookup (conf, queue, key))
            || (limit = json_integer_value (o)) < 0)
            continue;
        if (!counted) {
            if (count (json_object_get (jobspec, "resources"), 1, counts,
                       &slots, error) < 0)
                return -1;
            if (counts[0] > 0)
                slots *= counts[0];
            counts[1] *= slots;
            counts[2] *= slots;
            counted = true;
        }
        if (is_max ? counts[i % 3] > limit : counts[i % 3] < limit)
            return set_error (error, "requested %s (%lld) %s policy limit of"
                              " %d%s%s", dimension,
                              (long long)counts[i % 3],
                              is_max ? "exceeds" : "is under", limit,
                              queue ? " for queue " : "", queue ? queue : "");
    }
    return 0;
}

/* Duration */

static void format_duration (char *buf, size_t size, double d)
{
    static const double seconds[] = { 86400., 3600., 60., 1. };
    int i = 0;

    while (i < 3 && d < seconds[i])
        i++;
    snprintf (buf, size, "%.2g%c", d / seconds[i], "dhms"[i]);
}

static int check_duration (struct conf *conf, json_t *jobspec,
                           const char *queue, flux_error_t *error)
{
    json_t *o = lookup (conf, queue, DURATION);
    double duration = json_number_value (jp_get (jobspec,
                                        "attributes.system.duration"));
    char requested[32] = "unlimited";
    char text[32];
    double limit;

    if (!o || parse_duration (json_string_value (o), &limit) < 0
        || limit == 0. || isinf (limit)
        || (duration > 0. && duration <= limit))
        return 0;
    if (duration > 0.)
        format_duration (requested, sizeof (requested), duration);
    format_duration (text, sizeof (text), limit);
    return set_error (error, "requested duration (%s) exceeds policy limit of"
                      " %s%s%s", requested, text,
                      queue ? " for queue " : "", queue ? queue : "");
}

/* Plugins */

static int validate (flux_plugin_t *p, flux_plugin_arg_t *args,
                     struct conf *conf,
                     int (*check) (struct conf *conf, json_t *jobspec,
                                   const char *queue, flux_error_t *error))
{
    flux_error_t error;
    json_t *jobspec;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN,
                                "{s:o}", "jobspec", &jobspec) < 0)
        return flux_jobtap_error (p, args, "limits: no jobspec");
    if (check (conf, jobspec,
               json_string_value (jp_get (jobspec, "attributes.system.queue")),
               &error) < 0)
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

static void conf_destroy (void *arg)
{
    struct conf *conf = arg;

    json_decref (conf->o);
    free (conf);
}

static int init (flux_plugin_t *p, flux_plugin_f validate_cb)
{
    struct conf *conf = calloc (1, sizeof (*conf));

    if (!conf)
        return -1;
    if (flux_plugin_aux_set (p, "limits", conf, conf_destroy) < 0) {
        free (conf);
        return -1;
    }
    return flux_plugin_add_handler (p, "job.validate", validate_cb, conf) < 0
           || flux_plugin_add_handler (p, "conf.update", conf_update_cb,
                                       conf) < 0 ? -1 : 0;
}

int limit_job_size_plugin_init (flux_plugin_t *p)
{
    return init (p, size_cb);
}

int limit_duration_plugin_init (flux_plugin_t *p)
{
    return init (p, duration_cb);
}

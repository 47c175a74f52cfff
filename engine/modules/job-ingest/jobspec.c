/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What flux-python's frobnicator plugins "defaults" and "constraints" and its
 * validator plugin "jobspec" do, in C: without other plugins nobody has to
 * wait for Python.
 */
#include "ingest.h"

int deny (flux_error_t *error, int errnum, const char *fmt, ...)
{
    va_list ap;

    va_start (ap, fmt);
    vsnprintf (error->text, sizeof (error->text), fmt, ap);
    va_end (ap);
    errno = errnum;
    return -1;
}

/* Values a job does not set come from [policy.jobspec.defaults.system], or
 * from those of its queue, which may also name properties.
 */
static int apply_defaults (json_t *jobspec, json_t *defaults)
{
    const char *key;
    json_t *val;
    char path[256];

    json_object_foreach (defaults, key, val) {
        json_t *old;

        snprintf (path, sizeof (path), "attributes.system.%s", key);
        old = jp_get (jobspec, path);
        // "no limit" is how a job without a duration comes
        if ((!old || (streq (key, "duration")
                      && json_number_value (old) == 0.))
            && jp_set (jobspec, path, val) < 0)
            return -1;
    }
    return 0;
}

static int parse_duration_default (json_t *jobspec, flux_error_t *error)
{
    json_t *o = jp_get (jobspec, "attributes.system.duration");
    const char *s = json_string_value (o);
    double t;
    json_t *num;

    if (!s)
        return 0;
    if (parse_duration (s, &t) < 0)
        return deny (error, EINVAL, "invalid default duration '%s'", s);
    num = json_real (t);
    jp_set (jobspec, "attributes.system.duration", num);
    json_decref (num);
    return 0;
}

/* What the queue requires comes on top of what the job wants. */
static int apply_requires (json_t *jobspec, json_t *requires)
{
    const char *path = "attributes.system.constraints";
    json_t *c = jp_get (jobspec, path);
    json_t *props = json_object_get (c, "properties");
    size_t index;
    json_t *prop;
    int rc;

    if (!requires)
        return 0;
    if (!props) {
        c = c ? json_pack ("{s:[O {s:O}]}", "and", c, "properties", requires)
              : json_pack ("{s:O}", "properties", requires);
        rc = c ? jp_set (jobspec, path, c) : -1;
        json_decref (c);
        return rc;
    }
    json_array_foreach (requires, index, prop) {
        size_t i = 0;
        while (i < json_array_size (props)
               && !json_equal (json_array_get (props, i), prop))
            i++;
        if (i == json_array_size (props) && json_array_append (props, prop) < 0)
            return -1;
    }
    return 0;
}

int jobspec_frobnicate (const flux_conf_t *conf, json_t *jobspec,
                        flux_error_t *error)
{
    json_t *defaults = NULL;
    json_t *queues = NULL;
    json_t *queue;
    const char *name;

    (void)flux_conf_unpack (conf, NULL,
                            "{s?{s?{s?{s?o}}} s?o}",
                            "policy", "jobspec", "defaults", "system",
                              &defaults,
                            "queues", &queues);
    name = json_string_value (jp_get (jobspec, "attributes.system.queue"));
    if (!name) // the default queue is a default like others
        name = json_string_value (json_object_get (defaults, "queue"));
    queue = name ? json_object_get (queues, name) : NULL;
    if (name && !queue)
        return deny (error, EINVAL, "Invalid queue '%s' specified", name);
    if (!name && json_object_size (queues) > 0)
        return deny (error, EINVAL, "no queue specified");
    if (apply_defaults (jobspec, jp_get (queue,
                                "policy.jobspec.defaults.system")) < 0
        || apply_requires (jobspec, json_object_get (queue, "requires")) < 0
        || apply_defaults (jobspec, defaults) < 0)
        return deny (error, EINVAL, "error applying jobspec defaults");
    return parse_duration_default (jobspec, error);
}

/* Which resources there are, and how they nest, is for the scheduler to judge
 * (ssd, chassis): here it is only made sure that they are well formed.
 */
static int check_resource (json_t *res, flux_error_t *error)
{
    json_error_t e;
    const char *type;
    const char *label = NULL;
    json_t *count;
    json_t *with = NULL;
    json_t *child;
    size_t index;

    if (json_unpack_ex (res, &e, 0, "{s:s s:o s?s s?o}",
                        "type", &type,
                        "count", &count,
                        "label", &label,
                        "with", &with) < 0)
        return deny (error, EINVAL, "resource: %s", e.text);
    if (json_is_integer (count)
        ? json_integer_value (count) < 1
        : !json_is_object (count) && !json_is_string (count))
        return deny (error, EINVAL, "%s count must be >= 1", type);
    if (streq (type, "slot") && !label)
        return deny (error, EINVAL, "slots must have labels");
    if (with && !json_is_array (with))
        return deny (error, EINVAL, "%s with must be an array", type);
    json_array_foreach (with, index, child) {
        if (check_resource (child, error) < 0)
            return -1;
    }
    return 0;
}

static int check_resources (json_t *resources, flux_error_t *error)
{
    json_t *res;
    size_t index;

    if (!json_is_array (resources) || json_array_size (resources) == 0)
        return deny (error, EINVAL, "no array of resources, or nothing in it");
    json_array_foreach (resources, index, res) {
        if (check_resource (res, error) < 0)
            return -1;
    }
    return 0;
}

/* All the rest is as in any jobspec V1: check it with V1 resources in place.
 */
int jobspec_validate (json_t *jobspec, flux_error_t *error)
{
    flux_jobspec1_t *spec = NULL;
    json_t *copy = NULL;
    char *s = NULL;
    int rc = -1;

    if (check_resources (json_object_get (jobspec, "resources"), error) < 0)
        return -1;
    if ((copy = json_copy (jobspec))
        && json_object_set_new (copy, "resources",
                                json_pack ("[{s:s s:i s:s s:[{s:s s:i}]}]",
                                           "type", "slot",
                                           "count", 1,
                                           "label", "task",
                                           "with",
                                           "type", "core",
                                           "count", 1)) == 0
        && (s = json_dumps (copy, 0))
        && (spec = flux_jobspec1_decode (s, error)))
        rc = flux_jobspec1_check (spec, error);
    flux_jobspec1_destroy (spec);
    free (s);
    json_decref (copy);
    if (rc < 0)
        errno = EINVAL;
    return rc;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See config.h. Keys of the table that are not listed here belong to other
 * components; a key that nobody knows is refused, as it is a typing mistake.
 */

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

enum type {
    TYPE_STRING,
    TYPE_BOOL,
    TYPE_COUNT,         // integer, not below 0
    TYPE_SECONDS,       // number or Flux Standard Duration, below 0 is never
    TYPE_OTHER,         // read by another component
};

#define OFFSET(member) offsetof (struct config, member)

struct option {
    const char *name;
    enum type type;
    size_t offset;      // of the target in struct config
};

static const struct option options[] = {
    { "mapping", TYPE_STRING, OFFSET (mapping) },
    { "tc_timeout", TYPE_SECONDS, OFFSET (policy.tc_timeout) },
    { "setup_timeout", TYPE_SECONDS, OFFSET (policy.setup_timeout) },
    { "prerun_timeout", TYPE_SECONDS, OFFSET (policy.prerun_timeout) },
    { "postrun_timeout", TYPE_SECONDS, OFFSET (policy.postrun_timeout) },
    { "teardown_after", TYPE_SECONDS, OFFSET (policy.teardown_after) },
    { "orphan_grace", TYPE_SECONDS, OFFSET (policy.orphan_grace) },
    { "progress_interval", TYPE_SECONDS, OFFSET (progress_interval) },
    { "save_datamovements", TYPE_COUNT, OFFSET (policy.save_datamovements) },
    { "restrict_persistent_creation", TYPE_BOOL,
      OFFSET (restrict_persistent) },
    { "policy", TYPE_OTHER, 0 },
    { "daemons", TYPE_OTHER, 0 },
    { "presets", TYPE_OTHER, 0 },
    { "kubeconfig", TYPE_OTHER, 0 },
    { "drain_compute_nodes", TYPE_OTHER, 0 },
    { "soft_drain", TYPE_OTHER, 0 },
    { "prolog_timeout", TYPE_OTHER, 0 },
    { "datamovement_grace", TYPE_OTHER, 0 },
};

static const struct option *find_option (const char *name)
{
    for (size_t i = 0; i < sizeof (options) / sizeof (options[0]); i++) {
        if (!strcmp (options[i].name, name))
            return &options[i];
    }
    return NULL;
}

static int expected (const char *name,
                     const char *what,
                     json_t *value,
                     dws_error_t *error)
{
    char *s = json_dumps (value, JSON_ENCODE_ANY | JSON_COMPACT);

    dws_error (error, EINVAL, "rabbit.%s: expected %s, got %s",
               name, what, s ? s : "something else");
    free (s);
    errno = EINVAL;
    return -1;
}

/* A Flux Standard Duration: a number with an optional unit ms, s, m, h, d.
 */
static int parse_duration (const char *s, double *seconds)
{
    static const struct {
        const char *unit;
        double factor;
    } units[] = {
        { "", 1. }, { "ms", 1E-3 }, { "s", 1. }, { "m", 60. },
        { "h", 3600. }, { "d", 86400. },
    };
    char *end;
    double value = strtod (s, &end);

    if (end == s || !isfinite (value))
        return -1;
    for (size_t i = 0; i < sizeof (units) / sizeof (units[0]); i++) {
        if (!strcmp (end, units[i].unit)) {
            *seconds = value * units[i].factor;
            return 0;
        }
    }
    return -1;
}

static int set_option (struct config *config,
                       const struct option *opt,
                       json_t *value,
                       dws_error_t *error)
{
    void *target = (char *)config + opt->offset;

    switch (opt->type) {
        case TYPE_STRING:
            if (!json_is_string (value))
                return expected (opt->name, "a string", value, error);
            if (!(*(char **)target = strdup (json_string_value (value))))
                return dws_error (error, ENOMEM, "out of memory");
            break;
        case TYPE_BOOL:
            if (!json_is_boolean (value))
                return expected (opt->name, "true or false", value, error);
            *(bool *)target = json_is_true (value);
            break;
        case TYPE_COUNT:
            if (!json_is_integer (value)
                || json_integer_value (value) < 0
                || json_integer_value (value) > INT_MAX)
                return expected (opt->name, "an integer >= 0", value, error);
            *(int *)target = json_integer_value (value);
            break;
        case TYPE_SECONDS:
            if (json_is_number (value))
                *(double *)target = json_number_value (value);
            else if (!json_is_string (value)
                     || parse_duration (json_string_value (value),
                                        target) < 0)
                return expected (opt->name, "seconds or a duration",
                                 value, error);
            break;
        case TYPE_OTHER:
            break;
    }
    return 0;
}

static int set_maximums (struct config *config,
                         json_t *policy,
                         dws_error_t *error)
{
    json_t *maximums;
    const char *key;
    json_t *value;
    char name[128];

    if (!policy)
        return 0;
    if (!json_is_object (policy))
        return expected ("policy", "a table", policy, error);
    if (!(maximums = json_object_get (policy, "maximums")))
        return 0;
    if (!json_is_object (maximums))
        return expected ("policy.maximums", "a table", maximums, error);
    json_object_foreach (maximums, key, value) {
        snprintf (name, sizeof (name), "policy.maximums.%s", key);
        if (strcmp (key, "xfs") != 0 && strcmp (key, "gfs2") != 0
            && strcmp (key, "raw") != 0 && strcmp (key, "lustre") != 0)
            return dws_error (error, EINVAL,
                              "rabbit.%s: unknown file system type", name);
        if (!json_is_number (value) || json_number_value (value) < 0.)
            return expected (name, "GiB >= 0", value, error);
    }
    config->maximums = json_incref (maximums);
    return 0;
}

static int set_daemons (struct config *config,
                        json_t *daemons,
                        dws_error_t *error)
{
    const char *key;
    json_t *value;
    char name[128];

    if (!daemons)
        return 0;
    if (!json_is_object (daemons))
        return expected ("daemons", "a table", daemons, error);
    json_object_foreach (daemons, key, value) {
        snprintf (name, sizeof (name), "daemons.%s", key);
        if (!json_is_string (value) || json_string_length (value) == 0)
            return expected (name, "a systemd unit", value, error);
    }
    config->daemons = json_incref (daemons);
    return 0;
}

static int load_mapping (struct config *config, dws_error_t *error)
{
    json_t *o;
    json_error_t err;
    dws_error_t detail;

    if (!config->mapping)
        return dws_error (error, EINVAL, "rabbit.mapping: is required");
    if (!(o = json_load_file (config->mapping, 0, &err)))
        return dws_error (error, EINVAL, "rabbit.mapping: %s: %s",
                          config->mapping, err.text);
    config->topology = dws_topology_create (o, &detail);
    json_decref (o);
    if (!config->topology)
        return dws_error (error, errno, "rabbit.mapping: %s: %s",
                          config->mapping, detail.text);
    return 0;
}

struct config *config_create (const flux_conf_t *conf, dws_error_t *error)
{
    struct config *config;
    json_t *table = NULL;
    const char *key;
    json_t *value;
    flux_error_t err;

    if (!(config = calloc (1, sizeof (*config)))) {
        dws_error (error, ENOMEM, "out of memory");
        return NULL;
    }
    config->policy = (struct dws_policy)DWS_POLICY_DEFAULT;
    config->restrict_persistent = true;
    config->progress_interval = 2.;
    if (flux_conf_unpack (conf, &err, "{s?o}", "rabbit", &table) < 0) {
        dws_error (error, errno, "%s", err.text);
        goto error;
    }
    if (table && !json_is_object (table)) {
        dws_error (error, EINVAL, "rabbit: expected a table");
        goto error;
    }
    json_object_foreach (table, key, value) {
        const struct option *opt = find_option (key);
        if (!opt) {
            dws_error (error, EINVAL, "rabbit.%s: unknown key", key);
            goto error;
        }
        if (set_option (config, opt, value, error) < 0)
            goto error;
    }
    if (set_maximums (config, json_object_get (table, "policy"), error) < 0
        || set_daemons (config, json_object_get (table, "daemons"), error) < 0
        || load_mapping (config, error) < 0)
        goto error;
    return config;
error:
    config_destroy (config);
    return NULL;
}

void config_destroy (struct config *config)
{
    if (config) {
        int saved_errno = errno;
        dws_topology_destroy (config->topology);
        json_decref (config->maximums);
        json_decref (config->daemons);
        free (config->mapping);
        free (config);
        errno = saved_errno;
    }
}

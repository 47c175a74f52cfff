/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See config.h. A key that is not in the table is rejected as a typing mistake. Keys that
 * other components read themselves are checked here as well.
 */

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libdws/util/bounds.h"
#include "libdws/util/duration.h"
#include "libdws/util/jsonmake.h"
#include "libdws/util/spelling.h"
#include "libutil/errno_safe.h"
#include "config.h"
#include "config_checks_private.h"
#include "config_old_private.h"
#include "config_options_private.h"
#include "config_site_private.h"

/* Describe in words the values that this option accepts.
 */
static void describe_bounds (const struct option *opt, char *buf, size_t size)
{
    static const char *const nouns[] = {
        [TYPE_TEXT] = "a text",
        [TYPE_BOOL] = "true or false",
        [TYPE_INTEGER] = "an integer",
        [TYPE_SECONDS] = "seconds",
        [TYPE_CHOICE] = "one of several texts",
        [TYPE_TEXTS] = "an array of texts",
        [TYPE_TABLE] = "a table",
    };
    const char *noun = nouns[opt->type];

    if (opt->expected)
        snprintf (buf, size, "%s", opt->expected);
    else if (isinf (opt->min) || opt->min == INT_MIN)
        snprintf (buf, size, "%s", noun);
    else
        snprintf (buf, size, "%s >= %.0f", noun, opt->min);
}

static int unexpected (const struct option *opt,
                       json_t *value,
                       dws_error_t *error)
{
    char what[64];

    describe_bounds (opt, what, sizeof (what));
    return dws_config_expected (opt->name, what, value, error);
}

static int unexpected_time (const struct option *opt,
                            json_t *value,
                            dws_error_t *error)
{
    char what[64];
    char guess[DWS_DURATION_SIZE];

    if (!json_is_string (value)
        || !dws_duration_guess (json_string_value (value), guess))
        return unexpected (opt, value, error);
    describe_bounds (opt, what, sizeof (what));
    return dws_error (error, EINVAL, "rabbit.%s: expected %s, got \"%s\", did you "
                      "mean \"%s\"?", opt->name, what, json_string_value (value),
                      guess);
}

static int set_seconds (const struct option *opt,
                        double *target,
                        json_t *value,
                        dws_error_t *error)
{
    double seconds;

    if (json_is_number (value))
        seconds = json_number_value (value);
    else if (!json_is_string (value)
             || dws_duration_parse (json_string_value (value), &seconds) < 0)
        return unexpected_time (opt, value, error);
    if (isinf (seconds) || (opt->limit && seconds == 0.)) {
        *target = -1.;          // never
        return 0;
    }
    if (seconds < opt->min || seconds > opt->max)
        return unexpected (opt, value, error);
    *target = seconds;
    return 0;
}

static int set_choice (const struct option *opt,
                       int *target,
                       json_t *value,
                       dws_error_t *error)
{
    const char *s = json_string_value (value);

    for (int i = 0; s && opt->choices[i]; i++) {
        if (!strcmp (s, opt->choices[i])) {
            *target = i;
            return 0;
        }
    }
    return unexpected (opt, value, error);
}

static int check_texts (const struct option *opt,
                           json_t *value,
                           dws_error_t *error)
{
    json_t *entry;
    size_t index;

    if (!json_is_array (value))
        return unexpected (opt, value, error);
    json_array_foreach (value, index, entry) {
        if (!json_is_string (entry) || json_string_length (entry) == 0)
            return unexpected (opt, value, error);
    }
    return 0;
}

static void set_json (json_t **target, json_t *value)
{
    json_decref (*target);
    *target = json_incref (value);
}

static int set_option (struct dws_config *config,
                       const struct option *opt,
                       json_t *value,
                       dws_error_t *error)
{
    void *target = (char *)config + opt->offset;
    char *text;

    switch (opt->type) {
        case TYPE_TEXT:
            if (!json_is_string (value) || json_string_length (value) == 0)
                return unexpected (opt, value, error);
            if (opt->check && opt->check (opt->name, value, error) < 0)
                return -1;
            if (!(text = strdup (json_string_value (value))))
                return dws_error_nomem (error);
            free (*(char **)target);
            *(char **)target = text;
            break;
        case TYPE_BOOL:
            if (!json_is_boolean (value))
                return unexpected (opt, value, error);
            *(bool *)target = json_is_true (value);
            break;
        case TYPE_INTEGER:
            if (!json_is_integer (value)
                || json_integer_value (value) < opt->min
                || json_integer_value (value) > opt->max)
                return unexpected (opt, value, error);
            *(int *)target = json_integer_value (value);
            break;
        case TYPE_SECONDS:
            return set_seconds (opt, target, value, error);
        case TYPE_CHOICE:
            return set_choice (opt, target, value, error);
        case TYPE_TEXTS:
            if (check_texts (opt, value, error) < 0
                || (opt->check && opt->check (opt->name, value, error) < 0))
                return -1;
            set_json (target, value);
            break;
        case TYPE_TABLE:
            if (!json_is_object (value))
                return unexpected (opt, value, error);
            if (opt->check && opt->check (opt->name, value, error) < 0)
                return -1;
            if (!strcmp (opt->name, "policy"))
                value = json_object_get (value, "maximums");
            set_json (target, value);
            break;
    }
    return 0;
}

/* The whole table
 */

/* Members of the policy that have no key in the configuration.
 */
static const struct dws_policy constants = {
    .orphan_grace = 10.,
    .container_log_bytes = 4096,
};

/* Contended data is released after 1/YIELD_PART of data_first_timeout, or after YIELD_MAX
 * seconds if that is sooner.
 */
#define YIELD_PART 30.
#define YIELD_MAX 120.

static double yield_after (double timeout)
{
    double part = timeout / YIELD_PART;

    return part < 0. || part > YIELD_MAX ? YIELD_MAX : part;
}

static int set_default (struct dws_config *config,
                        const struct option *opt,
                        dws_error_t *error)
{
    json_t *value;
    int rc;

    if (!opt->fallback)
        return 0;
    if (!(value = json_loads (opt->fallback, JSON_DECODE_ANY, NULL)))
        return dws_error_nomem (error);
    /* No limit is a default even where it can be given as "inf" only. */
    if (opt->type == TYPE_SECONDS) {
        *(double *)((char *)config + opt->offset) = json_number_value (value);
        rc = 0;
    }
    else
        rc = set_option (config, opt, value, error);
    json_decref (value);
    return rc;
}

static int add_text (json_t *array, const char *text)
{
    if (array && json_array_append_new (array, json_string (text)) < 0) {
        errno = ENOMEM;
        return -1;
    }
    return 0;
}

/* Note a fault. Returns -1 if there is no place to note it, or no memory.
 */
static int fault (json_t *faults, const dws_error_t *error)
{
    if (!faults || errno == ENOMEM)
        return -1;
    return add_text (faults, error->text);
}

static void unknown_key (const char *key, char *note, size_t size)
{
    struct dws_nearest nearest = { .word = key };
    char hint[DWS_NEAREST_SIZE];

    for (size_t i = 0; i < config_option_count; i++)
        dws_nearest_try (&nearest, config_options[i].name);
    snprintf (note, size, "rabbit.%s: unknown key%s", key,
              dws_nearest_hint (&nearest, hint, sizeof (hint)));
}

/* Read one key into 'config'. A renamed key adds a note. An unknown or obsolete key is
 * an error, unless the caller has a place for notes and none for faults.
 */
static int read_key (struct dws_config *config,
                     json_t *table,
                     const char *key,
                     json_t *value,
                     json_t *faults,
                     json_t *notes,
                     dws_error_t *error)
{
    const struct option *opt;
    const char *now = key;
    char note[256];
    int rc = dws_config_old_key (table, key, &now, note, sizeof (note), error);

    if (rc < 0)
        return -1;
    opt = now ? config_option_find (now) : NULL;
    if (rc == DWS_KEY_NOT_OLD && !opt) {
        unknown_key (key, note, sizeof (note));
        rc = DWS_KEY_GONE;
    }
    if (rc == DWS_KEY_GONE && (faults || !notes))
        return dws_error (error, EINVAL, "%s", note);
    if (rc != DWS_KEY_NOT_OLD && add_text (notes, note) < 0)
        return dws_error_nomem (error);
    return opt ? set_option (config, opt, value, error) : 0;
}

/* The plugin must not fail for a fault in a key that it does not read.
 */
static bool concerns (bool plugin, const char *key)
{
    const struct option *opt = config_option_find (key);

    return !plugin || (opt && opt->plugin);
}

static struct dws_config *read_table (json_t *table,
                                      bool plugin,
                                      json_t *faults,
                                      json_t *notes,
                                      dws_error_t *error)
{
    struct dws_config *config;
    const char *key;
    json_t *value;

    if (!(config = calloc (1, sizeof (*config)))) {
        dws_error_nomem (error);
        return NULL;
    }
    config->policy = constants;
    for (size_t i = 0; i < config_option_count; i++) {
        if (set_default (config, &config_options[i], error) < 0)
            goto error;
    }
    if (table && !json_is_object (table)) {
        dws_error (error, EINVAL, "rabbit: expected a table");
        if (fault (faults, error) < 0)
            goto error;
        return config;
    }
    json_object_foreach (table, key, value) {
        if (concerns (plugin, key)
            && read_key (config, table, key, value, faults, notes, error) < 0
            && fault (faults, error) < 0)
            goto error;
    }
    config->policy.data_first_yield =
        yield_after (config->policy.data_first_timeout);
    if (!plugin && !json_object_get (table, "mapping")) {
        dws_error (error, EINVAL, "rabbit.mapping: is required");
        if (fault (faults, error) < 0)
            goto error;
    }
    return config;
error:
    dws_config_destroy (config);
    return NULL;
}

static struct dws_config *compile_limits (struct dws_config *config,
                                          dws_error_t *error)
{
    if (config && config->limits_table
        && !(config->storage_limits =
                 dws_limits_create (config->limits_table, error))) {
        dws_config_destroy (config);
        config = NULL;
    }
    return config;
}

struct dws_config *dws_config_create (json_t *table,
                                      json_t *notes,
                                      dws_error_t *error)
{
    return compile_limits (read_table (table, false, NULL, notes, error), error);
}

struct dws_config *dws_config_load (json_t *table,
                                    json_t *queues,
                                    json_t *notes,
                                    dws_error_t *error)
{
    struct dws_config *config;

    if ((config = dws_config_create (table, notes, error))
        && dws_config_check_site (config, table, queues, NULL, notes, error) < 0) {
        dws_config_destroy (config);
        config = NULL;
    }
    return config;
}

struct dws_config *dws_config_plugin (json_t *table, dws_error_t *error)
{
    return compile_limits (read_table (table, true, NULL, NULL, error), error);
}

void dws_config_destroy (struct dws_config *config)
{
    if (config) {
        ERRNO_SAFE_BLOCK;
        dws_topology_destroy (config->topology);
        json_decref (config->notice_command);
        json_decref (config->drain_queues);
        json_decref (config->drain_properties);
        json_decref (config->maximums);
        json_decref (config->daemons);
        json_decref (config->presets);
        json_decref (config->limits_table);
        dws_limits_destroy (config->storage_limits);
        free (config->mapping);
        free (config->kubeconfig);
        free (config->metrics);
        free (config);
    }
}

json_t *dws_config_faults (json_t *table, json_t *queues)
{
    struct dws_config *config = NULL;
    json_t *faults = json_array ();
    json_t *notes = json_array ();
    json_t *unknown = NULL;
    json_t *result = NULL;
    dws_error_t error;

    if (faults
        && notes
        && (config = read_table (table, false, faults, notes, &error))
        && dws_config_check_site (config, table, queues, faults, notes, &error) == 0
        && (unknown = dws_config_unknown_names (config->limits_table))
        && json_array_extend (faults, unknown) == 0)
        result = json_pack ("{s:O s:O}", "faults", faults, "notes", notes);
    dws_config_destroy (config);
    json_decref (unknown);
    json_decref (faults);
    json_decref (notes);
    if (!result)
        errno = ENOMEM;
    return result;
}

static json_t *encode_key (const struct dws_config *config,
                           const struct option *opt)
{
    const void *target = (const char *)config + opt->offset;

    switch (opt->type) {
        case TYPE_TEXT:
            return *(char *const *)target ? json_string (*(char *const *)target)
                                          : json_null ();
        case TYPE_BOOL:
            return json_boolean (*(const bool *)target);
        case TYPE_INTEGER:
            return json_integer (*(const int *)target);
        case TYPE_CHOICE:
            return json_string (opt->choices[*(const int *)target]);
        case TYPE_SECONDS:
            return json_real (*(const double *)target);
        default:
            return *(json_t *const *)target
                ? json_incref (*(json_t *const *)target) : json_null ();
    }
}

json_t *dws_config_agent (const struct dws_config *config)
{
    json_t *o = json_object ();

    for (size_t i = 0; i < config_option_count; i++) {
        if (config_options[i].agent)
            dws_json_set (&o, config_options[i].name,
                          encode_key (config, &config_options[i]));
    }
    return o;
}

static json_t *describe_option (const struct option *opt)
{
    static const char *const types[] = {
        [TYPE_TEXT] = "text",
        [TYPE_BOOL] = "true or false",
        [TYPE_INTEGER] = "number",
        [TYPE_SECONDS] = "time",
        [TYPE_CHOICE] = "text",
        [TYPE_TEXTS] = "array",
        [TYPE_TABLE] = "table",
    };
    char bounds[64];
    json_t *fallback;

    describe_bounds (opt, bounds, sizeof (bounds));
    fallback = opt->fallback ? json_loads (opt->fallback, JSON_DECODE_ANY,
                                           NULL)
                             : json_null ();
    return json_pack ("{s:s s:s s:o s:s s:s}",
                      "name", opt->name,
                      "type", types[opt->type],
                      "default", fallback,
                      "bounds", bounds,
                      "help", opt->help);
}

json_t *dws_config_describe (void)
{
    json_t *array = json_array ();

    for (size_t i = 0; i < config_option_count; i++)
        dws_json_append (&array, describe_option (&config_options[i]));
    return array;
}

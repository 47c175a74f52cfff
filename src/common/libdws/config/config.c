/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See config.h. A key that is not in the table is refused: it is a typing
 * mistake. Components that read a key by themselves still have it checked
 * here.
 */

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libdws/util/bounds.h"
#include "libutil/errno_safe.h"
#include "config.h"
#include "config_checks_private.h"
#include "config_old_private.h"

enum type {
    TYPE_TEXT,
    TYPE_BOOL,
    TYPE_INTEGER,
    TYPE_SECONDS,       // number or Flux Standard Duration
    TYPE_CHOICE,        // one of 'choices', kept as an int
    TYPE_TEXTS,         // array of texts
    TYPE_TABLE,
};

struct option {
    const char *name;
    enum type type;
    const char *fallback;       // the default, as JSON, or NULL
    double min;
    double max;
    size_t offset;              // of the target in struct dws_config
    check_f check;              // what type and bounds do not say, or NULL
    const char *expected;       // for errors, if the type does not say it
    const char *const *choices; // up to NULL
    bool agent;                 // the agent goes by it
    bool limit;                 // of time: 0 is none, as is infinity
    const char *help;
};

#define ANY -INFINITY, INFINITY
#define AT_LEAST(n) (n), INFINITY
#define OFFSET(member) offsetof (struct dws_config, member)

static const char *const release_choices[] = {
    [DWS_RELEASE_TEARDOWN] = "teardown",
    [DWS_RELEASE_UNMOUNT] = "unmount",
    NULL,
};

static const struct option options[] = {
    { "mapping", TYPE_TEXT, NULL, ANY, OFFSET (mapping),
      .help = "The file that flux-rabbitmapping(1) has written: which rabbit "
        "serves which nodes. Required. The scheduler sched-rabbit(1) reads "
        "it when it is loaded." },
    { "kubeconfig", TYPE_TEXT, NULL, ANY, OFFSET (kubeconfig), .agent = true,
      .help = "How the agent reaches Kubernetes. If it is not set: "
        "$KUBECONFIG of the agent, then ~/.kube/config of the user that it "
        "runs as. The file is read again when Kubernetes cannot be reached "
        "or refuses the token." },
    { "allow_insecure_kubernetes", TYPE_BOOL, "false", ANY,
      OFFSET (insecure_kubernetes), .agent = true,
      .help = "Let the agent use a kubeconfig with insecure-skip-tls-verify, "
        "or with http to anything but the loopback: whoever is on the way, or "
        "answers in the place of Kubernetes, gets the agent's token. The "
        "agent's log says so. Otherwise such a file is refused." },
    { "workers", TYPE_INTEGER, "16", 1, 1024, OFFSET (workers),
      .agent = true,
      .help = "How many requests to Kubernetes are under way at the same "
        "time, besides the watches. More of them make up for an API server "
        "that is slow to answer." },
    { "metrics", TYPE_TEXT, NULL, ANY, OFFSET (metrics),
      dws_config_check_metrics,
      .agent = true,
      .help = "Where the agent serves metrics for Prometheus: a port of the "
        "loopback, such as \"127.0.0.1:9464\", or \"unix:\" and the path of "
        "a socket, which only the instance owner can connect to. Any user "
        "of the node can read a port; no job or user is named there. Not "
        "served if it is not set." },
    { "tc_timeout", TYPE_SECONDS, "10", AT_LEAST (0),
      OFFSET (policy.tc_timeout),
      .limit = true,
      .help = "How long a workflow may be in TransientCondition, and how "
        "long a job waits for a rabbit that is down when its storage is to "
        "be made there, or where persistent storage has what only one can "
        "have, such as the management target of Lustre. For other jobs that "
        "have it a job waits as long as they do." },
    { "setup_timeout", TYPE_SECONDS, "-1", ANY, OFFSET (policy.setup_timeout),
      .limit = true,
      .help = "How long making the file systems may take. Then the job ends "
        "with an exception." },
    { "prerun_timeout", TYPE_SECONDS, "-1", ANY,
      OFFSET (policy.prerun_timeout),
      .limit = true,
      .help = "How long mounting them may take. Then the job ends with an "
        "exception, or goes on without the nodes that are to blame." },
    { "postrun_timeout", TYPE_SECONDS, "-1", ANY,
      OFFSET (policy.postrun_timeout),
      .limit = true,
      .help = "How long unmounting them may take. After that the data of the "
        "job is not moved any more, and nodes that still have a mount are "
        "drained." },
    { "teardown_after", TYPE_SECONDS, "-1", ANY,
      OFFSET (policy.teardown_after),
      .limit = true,
      .help = "How long unmounting and moving data may take together, from "
        "the job's end. Then the workflow is torn down. It should be larger "
        "than postrun_timeout, and smaller than the epilog-timeout of "
        "flux-jobtap-dws(1)." },
    { "orphan_grace", TYPE_SECONDS, "10", AT_LEAST (0),
      OFFSET (policy.orphan_grace),
      .help = "After this a workflow of this instance whose job is not "
        "active is torn down." },
    { "datamovement_grace", TYPE_SECONDS, "0", AT_LEAST (0),
      OFFSET (policy.datamovement_grace),
      .help = "How much longer than postrun_timeout and teardown_after allow "
        "data may be moved, as long as it makes progress." },
    { "release_nodes", TYPE_CHOICE, "\"teardown\"", ANY,
      OFFSET (policy.release_nodes), .choices = release_choices,
      .expected = "\"teardown\" or \"unmount\"",
      .help = "When the nodes of a job that has run are free for others: when "
        "its storage is torn down, or as soon as it is unmounted. Then data "
        "is staged out after the job's end, and flux rabbit losses lists "
        "what failed of that. Not with Fluxion: it would give storage away "
        "that is still in use." },
    { "prolog_timeout", TYPE_SECONDS, "1800", AT_LEAST (0),
      OFFSET (prolog_timeout),
      .limit = true,
      .help = "How long the prolog script of a rabbit job waits for the "
        "mounts." },
    { "progress_interval", TYPE_SECONDS, "2", ANY, OFFSET (progress_interval),
      .help = "A job that waits for rabbit storage for longer than this has "
        "an annotation that says for what, which flux jobs shows as "
        "{user.rabbit}. It is brought up to date no more often than that. "
        "Below zero there is none." },
    { "drain_compute_nodes", TYPE_BOOL, "true", ANY,
      OFFSET (drain_compute_nodes),
      .help = "Drain compute nodes that have lost the PCIe link to their "
        "rabbit, and undrain them when it is back. A node that an admin has "
        "drained stays drained, and one that an admin has undrained is not "
        "drained again for the same loss." },
    { "drain_queues", TYPE_TEXTS, NULL, ANY, OFFSET (drain_queues),
      .help = "Drain only nodes of these queues. If it is not set: all nodes "
        "that have a rabbit." },
    { "soft_drain", TYPE_BOOL, "true", ANY, OFFSET (soft_drain),
      .help = "Give nodes that have lost the link the property badrabbit, "
        "which keeps rabbit jobs away and no others." },
    { "avoid_suspects", TYPE_BOOL, "false", ANY, OFFSET (avoid_suspects),
      .help = "Give the nodes of rabbits whose controller does not answer, "
        "which Kubernetes calls Ready, the property badrabbit. It is taken off "
        "when the controller answers, or after an hour, so that a job may try." },
    { "offline_grace", TYPE_SECONDS, "60", AT_LEAST (0),
      OFFSET (offline_grace),
      .help = "How long a node must be offline without a break before it is "
        "Disabled in SystemStatus, which makes DWS unmount nothing there: "
        "not for those that are only slow to come up when Flux starts." },
    { "save_datamovements", TYPE_INTEGER, "0", 0, INT_MAX,
      OFFSET (policy.save_datamovements),
      .help = "So many data movements are recorded for each job, those that "
        "failed first." },
    { "container_log_bytes", TYPE_INTEGER, "4096", 0, 65536,
      OFFSET (policy.container_log_bytes),
      .help = "So many bytes are kept of the end of the log of each container "
        "of a job." },
    { "network_file_systems", TYPE_TEXTS, "[\"lustre\"]", ANY,
      OFFSET (network_types),
      .help = "Types of persistent file systems that every node reaches by "
        "network. Jobs that use others run next to the rabbits that hold "
        "them. The storage controllers ask for that with all types, Lustre "
        "included, which does not need it." },
    { "max_directives", TYPE_INTEGER, "64", 1, DWS_MAX_DIRECTIVE_COUNT,
      OFFSET (limits.count),
      .help = "A job that has more #DW directives than this is refused." },
    { "max_directive_bytes", TYPE_INTEGER, "65536", 1,
      DWS_MAX_DIRECTIVE_BYTES, OFFSET (limits.bytes),
      .help = "A job is refused whose #DW directives are longer than this, all "
        "together. The job manager reads them while all other jobs wait." },
    { "allow_rabbit_resources", TYPE_BOOL, "false", ANY,
      OFFSET (rabbit_resources),
      .help = "Let jobs without directives ask for ssd, rabbit or storage_node "
        "in their resources. No limit of policy holds for that storage." },
    { "refuse_early", TYPE_BOOL, "true", ANY, OFFSET (refuse_early),
      .help = "Refuse a job that by its directives alone asks for more than any "
        "rabbit has before there is a workflow for it. Set it to false if a "
        "storage profile makes less than users ask for, by a "
        "capacityScalingFactor below 1: such a job may fit." },
    { "restrict_persistent_creation", TYPE_BOOL, "true", ANY,
      OFFSET (restrict_persistent),
      .help = "Only the instance owner may create persistent file systems." },
    { "environment", TYPE_TEXTS, "[\"DW_*\", \"NNF_*\"]", ANY,
      OFFSET (environment),
      .help = "Shell patterns of the variables that a job may get from "
        "Kubernetes. Those that change how programs are found or loaded "
        "(PATH, LD_* and the like) it never gets." },
    { "policy", TYPE_TABLE, NULL, ANY, OFFSET (maximums),
      dws_config_check_policy,
      .help = "Its table maximums is the largest capacity in GiB per node "
        "that a job may ask for, by type of file system: xfs, gfs2, raw, "
        "lustre. No limit for those that are not there." },
    { "limits", TYPE_TABLE, NULL, ANY, OFFSET (limits_table),
      dws_config_check_limits,
      .help = "Who may have how much rabbit storage: a table for each rule, and "
        "contact, a text that says whom to ask who is refused. See LIMITS." },
    { "daemons", TYPE_TABLE, NULL, ANY, OFFSET (daemons),
      dws_config_check_daemons,
      .help = "What users may write after requires= in a directive: the "
        "systemd unit that is started on the nodes of such a job when its "
        "file systems are mounted, and stopped when it ends. For what is not "
        "listed here no unit is started: DWS judges it, and NNF makes what it "
        "stands for (copy-offload is a user container there)." },
    { "presets", TYPE_TABLE, NULL, ANY, OFFSET (presets),
      dws_config_check_presets,
      .help = "Names that users may write in place of directives: a text, or "
        "an array of texts. See flux-jobtap-dws(1)." },
};

#define OPTION_COUNT (sizeof (options) / sizeof (options[0]))

static const struct option *find_option (const char *name)
{
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (!strcmp (options[i].name, name))
            return &options[i];
    }
    return NULL;
}

/* What a value of this option has to be, in words.
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
    else if (isinf (opt->max) || opt->max == INT_MAX)
        snprintf (buf, size, "%s >= %.0f", noun, opt->min);
    else
        snprintf (buf, size, "%s from %.0f to %.0f", noun, opt->min,
                  opt->max);
}

static int unexpected (const struct option *opt,
                       json_t *value,
                       dws_error_t *error)
{
    char what[64];

    describe_bounds (opt, what, sizeof (what));
    return dws_config_expected (opt->name, what, value, error);
}

/* A Flux Standard Duration: a number with an optional unit ms, s, m, h, d, or
 * infinity.
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
    double value;

    if (!strcasecmp (s, "inf") || !strcasecmp (s, "infinity")) {
        *seconds = INFINITY;
        return 0;
    }
    value = strtod (s, &end);
    if (end == s || !isfinite (value))
        return -1;
    for (size_t i = 0; i < sizeof (units) / sizeof (units[0]); i++) {
        if (!strcmp (end, units[i].unit)) {
            *seconds = value * units[i].factor;
            return isfinite (*seconds) ? 0 : -1;
        }
    }
    return -1;
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
             || parse_duration (json_string_value (value), &seconds) < 0)
        return unexpected (opt, value, error);
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
            if (check_texts (opt, value, error) < 0)
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

/* Note a fault, or with no place to note it give up. Lack of memory always
 * ends it.
 */
static int fault (json_t *faults, const dws_error_t *error)
{
    if (!faults || errno == ENOMEM)
        return -1;
    return add_text (faults, error->text);
}

/* One key of the table. What is of no use is noted, an unknown key only if there
 * is a place for notes.
 */
static int read_key (struct dws_config *config,
                     json_t *table,
                     const char *key,
                     json_t *value,
                     json_t *notes,
                     dws_error_t *error)
{
    const struct option *opt;
    const char *now = key;
    char note[256];
    int rc = dws_config_old_key (table, key, &now, note, sizeof (note), error);

    if (rc < 0)
        return -1;
    if (rc > 0 && add_text (notes, note) < 0)
        return dws_error_nomem (error);
    if (!now)
        return 0;
    if ((opt = find_option (now)))
        return set_option (config, opt, value, error);
    snprintf (note, sizeof (note), "rabbit.%s: unknown key", key);
    if (!notes)
        return dws_error (error, EINVAL, "%s", note);
    return add_text (notes, note) < 0 ? dws_error_nomem (error) : 0;
}

static struct dws_config *read_table (json_t *table,
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
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (set_default (config, &options[i], error) < 0)
            goto error;
    }
    if (table && !json_is_object (table)) {
        dws_error (error, EINVAL, "rabbit: expected a table");
        if (fault (faults, error) < 0)
            goto error;
        return config;
    }
    json_object_foreach (table, key, value) {
        if (read_key (config, table, key, value, notes, error) < 0
            && fault (faults, error) < 0)
            goto error;
    }
    if (!json_object_get (table, "mapping")) {
        dws_error (error, EINVAL, "rabbit.mapping: is required");
        if (fault (faults, error) < 0)
            goto error;
    }
    return config;
error:
    dws_config_destroy (config);
    return NULL;
}

struct dws_config *dws_config_create (json_t *table,
                                      json_t *notes,
                                      dws_error_t *error)
{
    struct dws_config *config = read_table (table, NULL, notes, error);

    if (config && config->limits_table
        && !(config->storage_limits =
                 dws_limits_create (config->limits_table, error))) {
        dws_config_destroy (config);
        config = NULL;
    }
    return config;
}

void dws_config_destroy (struct dws_config *config)
{
    if (config) {
        ERRNO_SAFE_BLOCK;
        dws_topology_destroy (config->topology);
        json_decref (config->environment);
        json_decref (config->drain_queues);
        json_decref (config->drain_properties);
        json_decref (config->network_types);
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

json_t *dws_config_faults (json_t *table)
{
    struct dws_config *config;
    dws_error_t error;
    json_t *faults;

    if (!(faults = json_array ())
        || !(config = read_table (table, faults, faults, &error))) {
        json_decref (faults);
        errno = ENOMEM;
        return NULL;
    }
    dws_config_destroy (config);
    return faults;
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

    for (size_t i = 0; o && i < OPTION_COUNT; i++) {
        if (options[i].agent
            && json_object_set_new (o, options[i].name,
                                    encode_key (config, &options[i])) < 0) {
            json_decref (o);
            o = NULL;
        }
    }
    if (!o)
        errno = ENOMEM;
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

    for (size_t i = 0; array && i < OPTION_COUNT; i++) {
        if (json_array_append_new (array, describe_option (&options[i])) < 0) {
            json_decref (array);
            array = NULL;
        }
    }
    if (!array)
        errno = ENOMEM;
    return array;
}

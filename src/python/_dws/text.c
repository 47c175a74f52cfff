/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See text.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <jansson.h>

#include "libutil/errno_safe.h"
#include "libdws/config/config.h"
#include "libdws/config/limits.h"
#include "libdws/directive/capacity.h"
#include "libdws/directive/directive.h"
#include "libdws/directive/presets.h"
#include "libdws/graph/jgf.h"
#include "libdws/graph/topology.h"
#include "libdws/storage/allocation.h"
#include "libdws/storage/drives.h"
#include "libdws/storage/data_first.h"
#include "libdws/storage/reserved.h"
#include "libdws/storage/resources.h"
#include "libdws/storage/daemons.h"
#include "libdws/storage/location.h"
#include "libdws/storage/sizes.h"
#include "libdws/tell/shortage.h"
#include "libdws/util/bounds.h"
#include "libdws/util/clean.h"
#include "libdws/util/error.h"
#include "libdws/util/lists.h"

#include "text.h"

enum { MAX_ARGS = 3 };

/* One call: its decoded arguments, and what went wrong.
 */
struct call {
    json_t *args[MAX_ARGS];       // NULL if absent
    struct dws_topology *topo;    // of the argument "rabbitmapping"
    struct dws_breakdowns *breakdowns;  // of the argument of that name
    int fd;
    struct dws_directive_where where;     // of a fault in directives
    dws_error_t error;
};

/* Returns NULL with errno and call->error.
 */
typedef json_t *(*function_f) (struct call *call);

/* The directive's capacity in bytes, 0 without one.
 */
static json_int_t capacity_of (struct dws_directives *dirs, size_t index)
{
    const char *value = dws_directives_arg (dirs, index, "capacity");
    int64_t bytes = 0;

    if (value && dws_capacity_parse (value, &bytes) < 0)
        return 0;
    return bytes;
}

static json_t *encode_directives (struct dws_directives *dirs)
{
    json_t *result;
    json_t *list;
    json_t *warnings;

    if (!(result = json_pack ("{s:[] s:[]}", "directives", "warnings")))
        return NULL;
    list = json_object_get (result, "directives");
    warnings = json_object_get (result, "warnings");
    for (size_t i = 0; i < dws_directives_count (dirs); i++) {
        json_t *args = json_object ();
        const char *key;
        const char *value;

        for (size_t j = 0;
             (key = dws_directives_key (dirs, i, j))
             && (value = dws_directives_arg (dirs, i, key));
             j++) {
            if (json_object_set_new (args, key, json_string (value)) < 0)
                goto error;
        }
        if (json_array_append_new (list,
                                   json_pack ("{s:s s:s s:I s:I s:O}",
                                              "text",
                                              dws_directives_text (dirs, i),
                                              "command",
                                              dws_directives_command (dirs,
                                                                      i),
                                              "line",
                                              (json_int_t)
                                              dws_directives_line (dirs, i),
                                              "bytes",
                                              capacity_of (dirs, i),
                                              "args", args)) < 0)
            goto error;
        json_decref (args);
        continue;
error:
        json_decref (args);
        json_decref (result);
        return NULL;
    }
    for (size_t i = 0; i < dws_directives_warning_count (dirs); i++) {
        const char *s = dws_directives_warning (dirs, i);

        if (json_array_append_new (warnings, json_string (s)) < 0) {
            json_decref (result);
            return NULL;
        }
    }
    return result;
}

static const char *string_of (json_t *o, const char *key)
{
    return json_string_value (json_object_get (o, key));
}

static json_t *directives (struct call *call)
{
    struct dws_directives *dirs;
    json_t *presets = NULL;
    json_t *result;

    if (call->args[1]
        && !(presets = dws_presets_bind (call->args[1], call->args[2],
                                         &call->error)))
        return NULL;
    dirs = dws_directives_parse_where (call->args[0], presets, NULL,
                                       &call->where, &call->error);
    ERRNO_SAFE (json_decref (presets));
    if (!dirs)
        return NULL;
    if (dws_directives_fill (dirs, string_of (call->args[2], "USER"),
                             string_of (call->args[2], "JOBID"),
                             &call->error) < 0)
        result = NULL;
    else if (!(result = encode_directives (dirs)))
        dws_error_nomem (&call->error);
    ERRNO_SAFE (dws_directives_destroy (dirs));
    return result;
}

static json_t *breakdown_apply (struct call *call)
{
    json_t *o = call->args[2];
    struct dws_resources_opts opts = {
        .min_gib = json_integer_value (json_object_get (o, "min_gib")),
        .maximums = json_object_get (o, "maximums"),
        .rabbit_bytes = json_integer_value (json_object_get (o,
                                                             "rabbit_bytes")),
        .anywhere = json_is_true (json_object_get (o, "anywhere")),
        .total_bytes = json_integer_value (json_object_get (o,
                                                            "total_bytes")),
    };
    struct dws_directives *dirs = NULL;
    json_t *texts = json_object_get (o, "directives");
    json_t *result = NULL;

    if (texts && !(dirs = dws_directives_read (texts)))
        dws_error_nomem (&call->error);
    else {
        opts.directives = dirs;
        result = dws_resources_apply (call->args[0],
                                      call->breakdowns,
                                      &opts,
                                      &call->error);
    }
    ERRNO_SAFE (dws_directives_destroy (dirs));
    return result;
}

static json_t *sizes (struct call *call)
{
    struct dws_directives *dirs;
    struct dws_sizes sizes;
    json_t *result;

    if (!(dirs = dws_directives_read (call->args[1]))) {
        dws_error_nomem (&call->error);
        return NULL;
    }
    dws_sizes_read (call->args[0], dirs, NULL, NULL, &sizes);
    dws_directives_destroy (dirs);
    if (!(result = json_pack ("{s:{s:I s:I} s:{s:I s:I}}",
                              "job",
                                "asked", (json_int_t)sizes.job.asked,
                                "taken", (json_int_t)sizes.job.taken,
                              "node",
                                "asked", (json_int_t)sizes.node.asked,
                                "taken", (json_int_t)sizes.node.taken)))
        dws_error_nomem (&call->error);
    return result;
}

static json_t *allocation_nodes (struct call *call)
{
    return dws_allocation_nodes (call->args[0], call->topo, &call->error);
}

static json_t *allocation_sets (struct call *call)
{
    json_t *o = call->args[2];
    struct dws_bytes used = { 0 };
    struct dws_bytes reserved = { 0 };
    struct dws_allocation_opts opts = {
        .min_gib = json_integer_value (json_object_get (o, "min_gib")),
        .storages = json_object_get (o, "storages"),
        .used = &used,
        .rivals = json_object_get (o, "rivals"),
        .resources = json_object_get (o, "resources"),
        .reserved = &reserved,
    };
    json_t *result = NULL;

    dws_bytes_decode (&used, json_object_get (o, "used"));
    dws_bytes_decode (&reserved, json_object_get (o, "reserved"));
    if (used.lost || reserved.lost)
        dws_error_nomem (&call->error);
    else
        result = dws_allocation_sets (call->breakdowns,
                                      call->args[1],
                                      &opts,
                                      &call->error);
    dws_bytes_clear (&used);
    dws_bytes_clear (&reserved);
    return result;
}

/* Empties the map.
 */
static json_t *encode_bytes (struct call *call, struct dws_bytes *map)
{
    json_t *result = map->lost ? NULL : dws_bytes_encode (map);

    if (!result)
        dws_error_nomem (&call->error);
    dws_bytes_clear (map);
    return result;
}

static json_t *allocation_reserved (struct call *call)
{
    struct dws_bytes reserved = { 0 };

    if (dws_reserved (call->args[0], call->topo, &reserved, &call->error) < 0) {
        dws_bytes_clear (&reserved);
        return NULL;
    }
    return encode_bytes (call, &reserved);
}

static json_t *location_constraint (struct call *call)
{
    return dws_location_constraint (call->breakdowns,
                                    call->args[1],
                                    call->topo,
                                    INT32_MAX,
                                    &call->error);
}

static json_t *is_lustre (struct call *call)
{
    return json_boolean (dws_location_lustre (json_string_value (call->args[0])));
}

static json_t *daemons_units (struct call *call)
{
    return dws_daemons_units (call->breakdowns, call->args[1], &call->error);
}

static json_t *config_faults (struct call *call)
{
    json_t *result = dws_config_faults (call->args[0], call->args[1]);

    if (!result)
        dws_error_nomem (&call->error);
    return result;
}

static json_t *drives (struct call *call)
{
    struct dws_drives drives;
    json_t *result;

    dws_drives_read (call->args[0], &drives);
    if (!(result = json_pack ("{s:I s:I}",
                              "raw", (json_int_t)drives.raw,
                              "usable", (json_int_t)drives.usable)))
        dws_error_nomem (&call->error);
    return result;
}

static json_t *taken (struct call *call)
{
    struct dws_bytes taken = { 0 };

    dws_drives_taken (call->args[0], &taken);
    return encode_bytes (call, &taken);
}

static json_t *config_describe (struct call *call)
{
    json_t *result = dws_config_describe ();

    if (!result)
        dws_error_nomem (&call->error);
    return result;
}

static int write_all (void *arg, const char *buf, size_t len)
{
    int fd = *(int *)arg;

    while (len > 0) {
        ssize_t n = write (fd, buf, len);

        if (n < 0) {
            if (errno == EINTR)
                continue;
            return -1;
        }
        buf += n;
        len -= n;
    }
    return 0;
}

static int write_text (int fd, const char *s, size_t len, dws_error_t *error)
{
    if (write_all (&fd, s, len) < 0)
        return dws_error (error,
                          errno,
                          "could not write: %s",
                          strerror (errno));
    return 0;
}

/* R up to the value of "scheduling", which comes last.
 */
static int write_R (int fd, json_t *R, dws_error_t *error)
{
    static const char key[] = ",\"scheduling\":";
    char *text;
    int rc = -1;

    json_object_del (R, "scheduling");
    if (!(text = json_dumps (R, JSON_COMPACT)))
        return dws_error (error, ENOMEM, "out of memory");
    if (write_text (fd, text, strlen (text) - 1, error) == 0
        && write_text (fd, key, sizeof (key) - 1, error) == 0)
        rc = 0;
    ERRNO_SAFE (free (text));
    return rc;
}

static json_t *jgf (struct call *call)
{
    json_t *o = call->args[2];
    json_t *chunks = json_object_get (o, "chunks");
    bool whole = json_is_true (json_object_get (o, "whole"));
    struct dws_jgf_opts opts = {
        .cluster = json_string_value (json_object_get (o, "cluster")),
        .chunks = chunks ? json_integer_value (chunks) : DWS_JGF_CHUNKS,
        .exclude = json_string_value (json_object_get (o, "exclude")),
        .validate = json_is_true (json_object_get (o, "validate")),
    };
    dws_error_t *error = &call->error;
    struct dws_jgf *graph;
    json_t *result = NULL;

    if (!(graph = dws_jgf_create (call->args[0], call->topo, &opts, error)))
        return NULL;
    if ((!whole || write_R (call->fd, call->args[0], error) == 0)
        && dws_jgf_write (graph, write_all, &call->fd, error) == 0
        && (!whole || write_text (call->fd, "}", 1, error) == 0)
        && write_text (call->fd, "\n", 1, error) == 0
        && !(result = json_pack ("{s:I}",
                                 "vertices",
                                 (json_int_t)dws_jgf_count (graph))))
        dws_error_nomem (error);
    dws_jgf_destroy (graph);
    return result;
}

/* The groups are those of the subject.
 */
static enum dws_known is_member (const char *group, void *arg)
{
    return json_object_get (arg, group) ? DWS_KNOWN_YES : DWS_KNOWN_NO;
}

static json_t *limits_of (struct call *call)
{
    dws_error_t *error = &call->error;
    struct dws_subject subject = { .member = is_member };
    struct dws_applying applying;
    struct dws_limits *limits;
    json_int_t userid;
    json_t *result = NULL;

    if (!call->args[1]
        || json_unpack (call->args[1], "{s:I s?s s?s s?s s:o}",
                        "userid", &userid,
                        "user", &subject.user,
                        "bank", &subject.bank,
                        "queue", &subject.queue,
                        "groups", &subject.arg) < 0) {
        dws_error (error, EINVAL, "subject: malformed");
        return NULL;
    }
    subject.userid = userid;
    if ((limits = dws_limits_create (call->args[0], error))) {
        (void)dws_limits_find (limits, &subject, &applying);
        if (!(result = dws_limits_describe (&applying)))
            dws_error_nomem (error);
    }
    dws_limits_destroy (limits);
    return result;
}

/* The presets with the values of variables in the place of these.
 */
static json_t *presets (struct call *call)
{
    return dws_presets_bind (call->args[0], call->args[1], &call->error);
}

static json_t *clean (struct call *call)
{
    const char *text = json_string_value (call->args[0]);
    char *shown = dws_clean_copy (text ? text : "");
    json_t *result = shown ? json_string (shown) : NULL;

    free (shown);
    if (!result)
        dws_error_nomem (&call->error);
    return result;
}

/* Of a job as the scheduler sees it.
 */
static json_t *bounds (struct call *call)
{
    if (dws_bounds_check (call->args[0], "resources", true, &call->error) < 0
        || dws_bounds_check (call->args[1], "constraints", true,
                             &call->error) < 0)
        return NULL;
    return json_null ();
}

static json_t *hosts (struct call *call)
{
    const char *s = json_string_value (call->args[0]);
    struct hostlist *hl = dws_hostlist_decode (s);
    json_t *result = json_array ();
    const char *host;

    if (!hl) {
        dws_error (&call->error, errno == ENOMEM ? ENOMEM : EINVAL,
                   "'%.60s' %s", s ? s : "", dws_hostlist_fault (errno));
        json_decref (result);
        return NULL;
    }
    for (host = hostlist_first (hl); host; host = hostlist_next (hl)) {
        if (json_array_append_new (result, json_string (host)) < 0) {
            json_decref (result);
            result = NULL;
            dws_error_nomem (&call->error);
            break;
        }
    }
    hostlist_destroy (hl);
    return result;
}

static json_t *pool_nodes (struct call *call)
{
    struct dws_pool *pool = dws_pool_create (call->args[0], &call->error);
    json_t *result = NULL;

    if (pool)
        result = dws_pool_nodes (pool, call->args[1], NULL, &call->error);
    dws_pool_destroy (pool);
    return result;
}

static json_t *need (struct call *call)
{
    struct dws_need n;

    if (!dws_need_read (call->args[0], &n))
        return json_null ();
    return json_pack ("{s:I s:I s:I s:I s:b}", "groups", n.groups,
                      "nodes", n.nodes, "gib", n.gib, "cores", n.cores,
                      "chassis", n.chassis);
}

static json_t *encode_places (const struct dws_places *places)
{
    json_t *result = json_array ();

    for (size_t i = 0; i < places->count; i++) {
        const struct dws_place *p = &places->list[i];

        if (p->free + p->busy + p->broken + p->down > 0
            && json_array_append_new (result, json_pack (
                                          "{s:s s:s s:I s:I s:I s:I s:I}",
                                          "rabbit", p->rabbit,
                                          "state", p->state,
                                          "space", p->space,
                                          "free", p->free,
                                          "busy", p->busy,
                                          "broken", p->broken,
                                          "down", p->down)) < 0) {
            json_decref (result);
            return NULL;
        }
    }
    return result;
}

/* NULL for resources that ask for something else than nodes.
 */
static json_t *shortage (struct call *call)
{
    json_t *resources = NULL;
    json_t *constraint = NULL;
    json_t *rabbits = NULL;
    const char *bad = NULL;
    struct dws_pool *pool = NULL;
    struct dws_places *places = NULL;
    char text[DWS_SHORTAGE_SIZE];
    json_t *result = NULL;
    struct dws_need n;

    if (json_unpack (call->args[1], "{s:o s:o s:o s?s}", "resources", &resources,
                     "constraint", &constraint, "rabbits", &rabbits,
                     "bad", &bad) < 0) {
        dws_error (&call->error, EINVAL, "job: malformed");
        return NULL;
    }
    if (!dws_need_read (resources, &n))
        return json_null ();
    if ((pool = dws_pool_create (call->args[0], &call->error))
        && (places = dws_places_create (pool, constraint, rabbits, bad,
                                        n.cores, &call->error)))
        result = json_pack ("{s:s s:o}",
                            "text", dws_shortage_text (&n, places, text),
                            "places", encode_places (places));
    dws_places_destroy (places);
    dws_pool_destroy (pool);
    return result;
}

static const struct function {
    const char *name;
    function_f run;
    const char *args[MAX_ARGS];   // their names, for error texts
} functions[] = {
    { "directives", directives, { "dw", "presets", "values" } },
    { "presets", presets, { "presets", "values" } },
    { "sizes", sizes, { "resources", "directives" } },
    { "breakdown_apply", breakdown_apply,
      { "resources", "breakdowns", "options" } },
    { "allocation_nodes", allocation_nodes, { "R", "rabbitmapping" } },
    { "allocation_sets", allocation_sets,
      { "breakdowns", "nodes", "options" } },
    { "allocation_reserved", allocation_reserved, { "R", "rabbitmapping" } },
    { "location_constraint", location_constraint,
      { "breakdowns", "servers", "rabbitmapping" } },
    { "is_lustre", is_lustre, { "label" } },
    { "daemons_units", daemons_units, { "breakdowns", "daemons" } },
    { "drives", drives, { "status" } },
    { "taken", taken, { "servers" } },
    { "config_faults", config_faults, { "rabbit", "queues" } },
    { "config_describe", config_describe, { NULL } },
    { "limits", limits_of, { "limits", "subject" } },
    { "clean", clean, { "text" } },
    { "bounds", bounds, { "resources", "constraints" } },
    { "pool_nodes", pool_nodes, { "status", "constraint" } },
    { "need", need, { "resources" } },
    { "shortage", shortage, { "status", "job" } },
    { "hosts", hosts, { "hostlist" } },
    { "jgf", jgf, { "R", "rabbitmapping", "options" } },
};

static const struct function *find_function (const char *name,
                                             dws_error_t *error)
{
    for (size_t i = 0; i < sizeof (functions) / sizeof (functions[0]); i++)
        if (strcmp (functions[i].name, name) == 0)
            return &functions[i];
    dws_error (error, EINVAL, "no function %s", name);
    return NULL;
}

static int decode_args (struct call *call,
                        const struct function *fn,
                        const char *const texts[])
{
    json_error_t error;

    for (int i = 0; i < MAX_ARGS && fn->args[i]; i++)
        if (texts[i]
            && !(call->args[i] = json_loads (texts[i],
                                             JSON_DECODE_ANY,
                                             &error)))
            return dws_error (&call->error,
                              EINVAL,
                              "%s: %s",
                              fn->args[i],
                              error.text);
    for (int i = 0; i < MAX_ARGS && fn->args[i]; i++) {
        if ((strcmp (fn->args[i], "rabbitmapping") == 0
             && !(call->topo = dws_topology_create (call->args[i],
                                                    &call->error)))
            || (strcmp (fn->args[i], "breakdowns") == 0
                && !(call->breakdowns = dws_breakdowns_create (call->args[i],
                                                               &call->error))))
            return -1;
    }
    return 0;
}

char *dws_text_call (const char *function,
                     const char *arg0,
                     const char *arg1,
                     const char *arg2,
                     int fd,
                     struct dws_text_error *error)
{
    const char *const texts[MAX_ARGS] = { arg0, arg1, arg2 };
    struct call call = { .fd = fd };
    const struct function *fn;
    json_t *result = NULL;
    char *text = NULL;

    if ((fn = find_function (function, &call.error))
        && decode_args (&call, fn, texts) == 0
        && (result = fn->run (&call))
        && !(text = json_dumps (result, JSON_COMPACT | JSON_ENCODE_ANY)))
        dws_error_nomem (&call.error);
    if (!text) {
        error->errnum = errno;
        error->line = call.where.line;
        error->other = call.where.other;
        memcpy (error->text, call.error.text, sizeof (error->text));
    }
    json_decref (result);
    for (int i = 0; i < MAX_ARGS; i++)
        json_decref (call.args[i]);
    dws_topology_destroy (call.topo);
    dws_breakdowns_destroy (call.breakdowns);
    return text;
}

void dws_text_free (char *s)
{
    free (s);
}

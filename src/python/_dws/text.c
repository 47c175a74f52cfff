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

#include "libdws/allocation.h"
#include "libdws/breakdown.h"
#include "libdws/config.h"
#include "libdws/daemons.h"
#include "libdws/directive.h"
#include "libdws/error.h"
#include "libdws/jgf.h"
#include "libdws/location.h"
#include "libdws/topology.h"

#include "text.h"

/* Decoded arguments and the error of one call.
 */
struct call {
    json_t *args[3];
    dws_error_t error;
    int errnum;           // of an argument that could not be decoded
};

void dws_text_free (char *s)
{
    free (s);
}

static json_t *take (struct call *call,
                     int n,
                     const char *name,
                     const char *text,
                     int *failed)
{
    json_error_t jerror;

    if (text
        && !(call->args[n] = json_loads (text, JSON_DECODE_ANY, &jerror))
        && !*failed) {
        dws_error (&call->error, EINVAL, "%s: %s", name, jerror.text);
        call->errnum = EINVAL;
        *failed = 1;
    }
    return call->args[n];
}

/* End a call: release the arguments, and turn 'result' into text.
 */
static char *finish (struct call *call,
                     json_t *result,
                     struct dws_text_error *error)
{
    int saved_errno = call->errnum ? call->errnum : errno;
    char *text = NULL;

    for (int i = 0; i < 3; i++)
        json_decref (call->args[i]);
    if (result) {
        text = json_dumps (result, JSON_COMPACT | JSON_ENCODE_ANY);
        json_decref (result);
        if (!text) {
            dws_error (&call->error, ENOMEM, "out of memory");
            saved_errno = ENOMEM;
        }
    }
    if (!text) {
        error->errnum = saved_errno;
        memcpy (error->text, call->error.text, sizeof (error->text));
    }
    return text;
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
                                   json_pack ("{s:s s:s s:O}",
                                              "text",
                                              dws_directives_text (dirs, i),
                                              "command",
                                              dws_directives_command (dirs,
                                                                      i),
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

char *dws_text_directives (const char *dw,
                           const char *presets,
                           struct dws_text_error *error)
{
    struct call call = { 0 };
    int failed = 0;
    json_t *dw_obj = take (&call, 0, "dw", dw, &failed);
    json_t *presets_obj = take (&call, 1, "presets", presets, &failed);
    struct dws_directives *dirs;
    json_t *result = NULL;

    if (!failed
        && (dirs = dws_directives_parse (dw_obj,
                                         presets_obj,
                                         &call.error))) {
        if (!(result = encode_directives (dirs)))
            dws_error (&call.error, ENOMEM, "out of memory");
        dws_directives_destroy (dirs);
    }
    return finish (&call, result, error);
}

char *dws_text_breakdown_apply (const char *resources,
                                const char *breakdowns,
                                const char *opts,
                                struct dws_text_error *error)
{
    struct call call = { 0 };
    int failed = 0;
    json_t *res = take (&call, 0, "resources", resources, &failed);
    json_t *list = take (&call, 1, "breakdowns", breakdowns, &failed);
    json_t *o = take (&call, 2, "options", opts, &failed);
    struct dws_breakdown_opts bopts = {
        .min_gib = json_integer_value (json_object_get (o, "min_gib")),
        .maximums = json_object_get (o, "maximums"),
    };
    json_t *result = NULL;

    if (!failed)
        result = dws_breakdown_apply (res, list, &bopts, &call.error);
    return finish (&call, result, error);
}

char *dws_text_allocation_nodes (const char *R,
                                 const char *mapping,
                                 struct dws_text_error *error)
{
    struct call call = { 0 };
    int failed = 0;
    json_t *R_obj = take (&call, 0, "R", R, &failed);
    json_t *map = take (&call, 1, "rabbitmapping", mapping, &failed);
    struct dws_topology *topo;
    json_t *result = NULL;

    if (!failed && (topo = dws_topology_create (map, &call.error))) {
        result = dws_allocation_nodes (R_obj, topo, &call.error);
        dws_topology_destroy (topo);
    }
    return finish (&call, result, error);
}

char *dws_text_allocation_sets (const char *breakdowns,
                                const char *nodes_per_rabbit,
                                const char *opts,
                                struct dws_text_error *error)
{
    struct call call = { 0 };
    int failed = 0;
    json_t *list = take (&call, 0, "breakdowns", breakdowns, &failed);
    json_t *nodes = take (&call, 1, "nodes", nodes_per_rabbit, &failed);
    json_t *o = take (&call, 2, "options", opts, &failed);
    struct dws_allocation_opts aopts = {
        .min_gib = json_integer_value (json_object_get (o, "min_gib")),
        .storages = json_object_get (o, "storages"),
        .used = json_object_get (o, "used"),
        .resources = json_object_get (o, "resources"),
        .reserved = json_object_get (o, "reserved"),
    };
    json_t *result = NULL;

    if (!failed)
        result = dws_allocation_sets (list, nodes, &aopts, &call.error);
    return finish (&call, result, error);
}

char *dws_text_location_constraint (const char *breakdowns,
                                    const char *servers,
                                    const char *mapping,
                                    struct dws_text_error *error)
{
    struct call call = { 0 };
    int failed = 0;
    json_t *list = take (&call, 0, "breakdowns", breakdowns, &failed);
    json_t *objects = take (&call, 1, "servers", servers, &failed);
    json_t *map = take (&call, 2, "rabbitmapping", mapping, &failed);
    struct dws_topology *topo;
    json_t *result = NULL;

    if (!failed && (topo = dws_topology_create (map, &call.error))) {
        result = dws_location_constraint (list, objects, topo, NULL, &call.error);
        dws_topology_destroy (topo);
    }
    return finish (&call, result, error);
}

char *dws_text_allocation_reserved (const char *R,
                                    const char *mapping,
                                    struct dws_text_error *error)
{
    struct call call = { 0 };
    int failed = 0;
    json_t *R_obj = take (&call, 0, "R", R, &failed);
    json_t *map = take (&call, 1, "rabbitmapping", mapping, &failed);
    struct dws_topology *topo;
    json_t *result = NULL;

    if (!failed && (topo = dws_topology_create (map, &call.error))) {
        result = dws_allocation_reserved (R_obj, topo, &call.error);
        dws_topology_destroy (topo);
    }
    return finish (&call, result, error);
}

char *dws_text_config_faults (const char *table, struct dws_text_error *error)
{
    struct call call = { 0 };
    int failed = 0;
    json_t *obj = take (&call, 0, "rabbit", table, &failed);
    json_t *result = NULL;

    if (!failed && !(result = dws_config_faults (obj)))
        dws_error_nomem (&call.error);
    return finish (&call, result, error);
}

char *dws_text_config_describe (struct dws_text_error *error)
{
    struct call call = { 0 };
    json_t *result;

    if (!(result = dws_config_describe ()))
        dws_error_nomem (&call.error);
    return finish (&call, result, error);
}

char *dws_text_daemons_units (const char *breakdowns,
                              const char *daemons,
                              struct dws_text_error *error)
{
    struct call call = { 0 };
    int failed = 0;
    json_t *list = take (&call, 0, "breakdowns", breakdowns, &failed);
    json_t *table = take (&call, 1, "daemons", daemons, &failed);
    json_t *result = NULL;

    if (!failed)
        result = dws_daemons_units (list, table, &call.error);
    return finish (&call, result, error);
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
    {
        int saved_errno = errno;
        free (text);
        errno = saved_errno;
    }
    return rc;
}

char *dws_text_jgf (const char *R,
                    const char *mapping,
                    const char *opts,
                    int fd,
                    struct dws_text_error *error)
{
    struct call call = { 0 };
    int failed = 0;
    json_t *R_obj = take (&call, 0, "R", R, &failed);
    json_t *map = take (&call, 1, "rabbitmapping", mapping, &failed);
    json_t *o = take (&call, 2, "options", opts, &failed);
    json_t *chunks = json_object_get (o, "chunks");
    bool whole = json_is_true (json_object_get (o, "whole"));
    struct dws_jgf_opts jopts = {
        .cluster = json_string_value (json_object_get (o, "cluster")),
        .chunks = chunks ? json_integer_value (chunks) : DWS_JGF_CHUNKS,
        .exclude = json_string_value (json_object_get (o, "exclude")),
        .validate = json_is_true (json_object_get (o, "validate")),
    };
    struct dws_topology *topo = NULL;
    struct dws_jgf *jgf = NULL;
    json_t *result = NULL;

    if (!failed
        && (topo = dws_topology_create (map, &call.error))
        && (jgf = dws_jgf_create (R_obj, topo, &jopts, &call.error))
        && (!whole || write_R (fd, R_obj, &call.error) == 0)
        && dws_jgf_write (jgf, write_all, &fd, &call.error) == 0
        && (!whole || write_text (fd, "}", 1, &call.error) == 0)
        && write_text (fd, "\n", 1, &call.error) == 0
        && !(result = json_pack ("{s:I}",
                                 "vertices",
                                 (json_int_t)dws_jgf_count (jgf))))
        dws_error (&call.error, ENOMEM, "out of memory");
    dws_jgf_destroy (jgf);
    dws_topology_destroy (topo);
    return finish (&call, result, error);
}

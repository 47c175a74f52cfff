/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Fuzz target: everything that reads objects of Kubernetes. The input is one
 * JSON object whose keys are the arguments of the functions.
 */

#include <stdint.h>
#include <stdlib.h>
#include <jansson.h>

#include "libdws/storage/allocation.h"
#include "libdws/storage/reserved.h"
#include "libdws/storage/resources.h"
#include "libdws/storage/daemons.h"
#include "libdws/storage/location.h"

static struct dws_topology *topo;

int LLVMFuzzerInitialize (int *argc, char ***argv)
{
    json_t *mapping = json_loads (
        "{\"computes\": {\"a1\": \"r1\", \"b1\": \"r2\"},"
        " \"rabbits\": {\"r1\": {\"capacity\": 9, \"hostlist\": \"a1\"},"
        "              \"r2\": {\"capacity\": 9, \"hostlist\": \"b1\"}}}",
        0, NULL);

    topo = dws_topology_create (mapping, NULL);
    json_decref (mapping);
    return topo ? 0 : -1;
}

/* A failure must have a text; what is made is released.
 */
static void take (json_t *result, const dws_error_t *error)
{
    if (!result && !*error->text)
        abort ();
    json_decref (result);
}

static void rewrite (json_t *in, const struct dws_breakdowns *breakdowns)
{
    struct dws_resources_opts opts = {
        .maximums = json_object_get (in, "maximums"),
        .rabbit_bytes = INT64_C (1) << 40,
    };
    json_t *resources = json_object_get (in, "resources");
    dws_error_t error = { "" };
    json_t *once = dws_resources_apply (resources, breakdowns, &opts, &error);
    json_t *twice;

    if (once) {
        twice = dws_resources_apply (once, breakdowns, &opts, &error);
        if (!twice || !json_equal (once, twice))
            abort ();
        json_decref (twice);
    }
    take (once, &error);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    json_t *in = json_loadb ((const char *)data, size, 0, NULL);
    struct dws_breakdowns *breakdowns = NULL;
    struct dws_bytes used = { 0 };
    struct dws_bytes reserved = { 0 };
    struct dws_allocation_opts opts = {
        .storages = json_object_get (in, "storages"),
        .used = &used,
        .resources = json_object_get (in, "resources"),
    };
    dws_error_t error = { "" };

    if (!in || !(breakdowns = dws_breakdowns_create (
                     json_object_get (in, "breakdowns"), &error))) {
        if (in && !*error.text)
            abort ();
        json_decref (in);
        return 0;
    }
    dws_bytes_decode (&used, json_object_get (in, "used"));
    rewrite (in, breakdowns);
    take (dws_allocation_sets (breakdowns,
                               json_object_get (in, "nodes"),
                               &opts,
                               &error), &error);
    (void)dws_reserved (in, topo, &reserved, &error);
    take (dws_bytes_encode (&reserved), &error);
    take (dws_location_servers (breakdowns), &error);
    take (dws_location_constraint (breakdowns,
                                   json_object_get (in, "servers"),
                                   topo,
                                   3,
                                   &error), &error);
    take (dws_daemons_units (breakdowns,
                             json_object_get (in, "daemons"),
                             &error), &error);
    dws_bytes_clear (&used);
    dws_bytes_clear (&reserved);
    dws_breakdowns_destroy (breakdowns);
    json_decref (in);
    return 0;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Fuzz target: R and rabbitmapping to a resource graph. The input is one JSON
 * object {"R", "mapping", "exclude"?, "cluster"?, "chunks"?}.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "libdws/graph/jgf.h"
#include "libdws/storage/allocation.h"

struct buffer {
    char *text;
    size_t len;
};

static int collect (void *arg, const char *text, size_t len)
{
    struct buffer *buf = arg;
    char *longer = realloc (buf->text, buf->len + len);

    if (!longer)
        return -1;
    memcpy (longer + buf->len, text, len);
    buf->text = longer;
    buf->len += len;
    return 0;
}

static int forget (void *arg, const char *text, size_t len)
{
    return 0;
}

/* A large graph is written, but not read again: its text would need more memory than a
 * fuzzer has.
 */
#define READ_MAX 20000

static void write_graph (struct dws_jgf *jgf)
{
    struct buffer buf = { 0 };
    json_t *o;
    json_t *graph;
    dws_error_t error;

    if (dws_jgf_count (jgf) > READ_MAX) {
        if (dws_jgf_write (jgf, forget, NULL, &error) < 0)
            abort ();
        return;
    }
    if (dws_jgf_write (jgf, collect, &buf, &error) < 0)
        abort ();
    if (!(o = json_loadb (buf.text, buf.len, 0, NULL)))
        abort ();
    graph = json_object_get (o, "graph");
    if (json_array_size (json_object_get (graph, "nodes"))
        != dws_jgf_count (jgf)
        || json_array_size (json_object_get (graph, "edges"))
           != dws_jgf_count (jgf) - 1)
        abort ();
    json_decref (o);
    free (buf.text);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    json_t *in;
    json_t *R;
    struct dws_topology *topo = NULL;
    struct dws_jgf *jgf = NULL;
    struct dws_jgf_opts opts;
    dws_error_t error = { "" };
    json_t *nodes;

    if (!(in = json_loadb ((const char *)data, size, 0, NULL)))
        return 0;
    R = json_object_get (in, "R");
    opts = (struct dws_jgf_opts){
        .cluster = json_string_value (json_object_get (in, "cluster")),
        .chunks = json_integer_value (json_object_get (in, "chunks")) % 64,
        .exclude = json_string_value (json_object_get (in, "exclude")),
        .validate = json_is_true (json_object_get (in, "validate")),
    };
    topo = dws_topology_create (json_object_get (in, "mapping"), &error);
    if (topo) {
        if ((jgf = dws_jgf_create (R, topo, &opts, &error)))
            write_graph (jgf);
        nodes = dws_allocation_nodes (R, topo, &error);
        json_decref (nodes);
    }
    if ((!topo || !jgf) && !*error.text)
        abort ();
    dws_jgf_destroy (jgf);
    dws_topology_destroy (topo);
    json_decref (in);
    return 0;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * R + rabbitmapping -> the resource graph that Fluxion reads (JGF), written
 * as a stream: memory does not grow with the number of vertices.
 *
 * The graph is a tree: cluster / chassis / {ssd, node, storage_node, rabbit} /
 * {core, gpu, ...}. A rabbit and the nodes on it make a chassis; its capacity
 * is split into equal ssds, which begin as down. Nodes without a rabbit are
 * children of the cluster. A rabbit that is itself in R becomes a
 * storage_node in its chassis, any other a vertex of type rabbit.
 */

#ifndef LIBDWS_JGF_H
#define LIBDWS_JGF_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/util/error.h"
#include "topology.h"

struct dws_jgf;

struct dws_jgf_opts {
    const char *cluster;  // borrowed: name of the cluster
    int chunks;           // ssds per rabbit
    const char *exclude;  // borrowed: ranks (idset, counting nodelist from 0)
                          // or hosts to leave out, or NULL
    int validate;         // all computes of the mapping must be in R
};

#define DWS_JGF_CHUNKS 36

/* Take what is needed from R, which is not referred to later; 'topo' must
 * outlive the result. Fails with EINVAL or ENOMEM.
 */
struct dws_jgf *dws_jgf_create (json_t *R,
                                const struct dws_topology *topo,
                                const struct dws_jgf_opts *opts,
                                dws_error_t *error);
void dws_jgf_destroy (struct dws_jgf *jgf);

/* Takes 'len' bytes. Returns -1 with errno set on failure.
 */
typedef int (*dws_jgf_sink_f) (void *arg, const char *buf, size_t len);

/* Write {"graph": {...}}, the value of R's "scheduling" key, in pieces to
 * 'sink'. Fails with the errno of the sink, or ENOMEM.
 */
int dws_jgf_write (struct dws_jgf *jgf,
                   dws_jgf_sink_f sink,
                   void *arg,
                   dws_error_t *error);

/* The number of vertices. The tree has one edge less.
 */
uint64_t dws_jgf_count (const struct dws_jgf *jgf);

#endif /* !LIBDWS_JGF_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Choosing rabbits for the storage of a job that has no nodes yet, so that nodes can
 * be found next to it.
 */

#ifndef LIBDWS_DATA_FIRST_H
#define LIBDWS_DATA_FIRST_H

#include <stdint.h>
#include <jansson.h>

#include "libdws/graph/topology.h"
#include "libdws/util/error.h"
#include "allocation.h"

/* Why a job with these commands (enum dws_command, or-ed) and resources (jobspec V1)
 * cannot have its data before it has nodes: a text for the user, or NULL if it can.
 */
const char *dws_first_fault (unsigned int commands, json_t *resources);

/* The nodes of an instance, as its scheduler sees them.
 */
struct dws_pool;

/* Decode a response to resource.sched-status: keys all, allocated, down, each an R
 * (RFC 20). Fails with EPROTO, EINVAL or ENOMEM.
 */
struct dws_pool *dws_pool_create (json_t *status, dws_error_t *error);
void dws_pool_destroy (struct dws_pool *pool);

/* How good each node is for a job: a new object {HOST: GOODNESS} of those that it may
 * have by 'constraint' (RFC 31, NULL: all) and 'allowed' ({"hostlist": [HOSTS]}, or a
 * JSON null: all). Fails with EINVAL (a constraint that cannot be read) or ENOMEM.
 */
enum dws_goodness {
    DWS_POOL_DOWN,              // or drained
    DWS_POOL_BUSY,
    DWS_POOL_IDLE,
};

json_t *dws_pool_nodes (const struct dws_pool *pool, json_t *constraint,
                        json_t *allowed, dws_error_t *error);

/* The cores of a node that no job has; '*all' is set to the cores of the node. If the
 * cores of jobs on the node are unknown, none is left.
 */
int64_t dws_pool_cores (const struct dws_pool *pool, const char *host,
                        int64_t *all);

/* Choose rabbits for 'nodes' nodes out of those, and say how many nodes are to be next to
 * each: an object as dws_allocation_nodes() makes it; empty if nothing of 'breakdowns'
 * is bound to nodes. A single rabbit is chosen if possible: of those with most idle nodes
 * the one with most room; else as few as will do, each with as many nodes as it has nodes
 * and room for. 'opts' as for dws_allocation_sets(), without resources.
 *
 * Fails with ENOSPC (there is no room, or there are not so many nodes; text for the
 * user), EINVAL or ENOMEM.
 */
json_t *dws_first_nodes (const struct dws_breakdowns *breakdowns,
                         json_t *goodness,
                         int64_t nodes,
                         const struct dws_topology *topo,
                         const struct dws_allocation_opts *opts,
                         dws_error_t *error);

#endif /* !LIBDWS_DATA_FIRST_H */

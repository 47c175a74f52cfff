/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * DirectiveBreakdowns + the job's hosts -> what to write into the Servers
 * objects: which rabbit holds how many allocations of which size.
 */

#ifndef LIBDWS_ALLOCATION_H
#define LIBDWS_ALLOCATION_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/graph/topology.h"
#include "libdws/util/error.h"
#include "breakdowns.h"
#include "bytes.h"

struct dws_allocation_opts {
    int64_t min_gib;      // smallest allocation, GiB (0: as NNF makes it)
    json_t *storages;     // borrowed: array of Storage objects as Kubernetes
                          // has them, or an object with these by name, or NULL:
                          // take every rabbit as usable
    const struct dws_bytes *used;      // taken by others (drives.h), or NULL
    json_t *rivals;       // borrowed: what others keep to themselves there, or
                          // are to get before the job, or NULL:
                          // [{"servers": {"name", "namespace"}, (if any)
                          //   "holder": text that names them,
                          //   "lasting": true if it may be for ever,
                          //   "waits": true if they are to get it,
                          //   "rabbits": dws_colocation_taken()}]
    bool lasting;         // of that only what may be for ever
    bool anywhere;        // sets of AllocateAcrossServers and
                          // AllocateSingleServer may lie on any rabbit
    bool bound;           // without these sets
    bool ever;            // as if all rabbits were in order, and empty
    json_t *resources;    // borrowed: jobspec resources with the ssd, or NULL
    const struct dws_bytes *reserved;  // set aside for the job by the scheduler,
                          // or NULL. If it is NULL or empty, 'resources' tell.
                          // What is set aside is used before anything else.
};

/* Count the hosts of an R object (RFC 20), or of an RFC 29 hostlist given as
 * a JSON string, by rabbit: a new object {RABBIT: COUNT, ...} in the order
 * in which the rabbits first occur. A host that is listed twice counts once. A host
 * that has no rabbit, or is one, takes part in the job without storage.
 * Fails with EINVAL (bad R) or ENOMEM.
 */
json_t *dws_allocation_nodes (json_t *R,
                              const struct dws_topology *topo,
                              dws_error_t *error);

/* Add all other rabbits of the mapping to that object, with 0 nodes, but those that
 * are keys of 'without' (NULL: none). Fails with ENOMEM.
 */
int dws_allocation_anywhere (json_t *nodes_per_rabbit,
                             const struct dws_topology *topo,
                             json_t *without,
                             dws_error_t *error);

/* The hosts of the hostlist 'hosts' whose rabbit, by its Storage object, can hold no
 * storage now: a hostlist that the caller frees. 'storages' is as above, but without it
 * no rabbit can. Fails with EINVAL or ENOMEM.
 */
char *dws_allocation_down (const char *hosts,
                           json_t *storages,
                           const struct dws_topology *topo,
                           dws_error_t *error);

/* The reverse view for people and for drains: the RFC 29 hostlist of the
 * rabbits in 'nodes_per_rabbit' that have nodes of the job, and of those in 'bytes'.
 * The caller frees it.
 */
char *dws_allocation_rabbits (json_t *nodes_per_rabbit,
                              const struct dws_bytes *bytes,
                              dws_error_t *error);

/* Is there a set that need not be next to the nodes of the job?
 */
bool dws_allocation_unbound (const struct dws_breakdowns *breakdowns);

/* Lay out the storage of all 'breakdowns' over the rabbits of the job.
 * 'nodes_per_rabbit' is as above.
 * Returns a new array with one entry for each breakdown that has storage:
 *   {"servers": {"name", "namespace"},
 *    "allocationSets": [{"label", "allocationSize",
 *                        "storage": [{"name", "allocationCount"}]}],
 *    "colocation": {LABEL: [KEY, ...]}}
 * "colocation" is there if one of the sets has a key. The allocations of a set have
 * the same size. With 'anywhere' rabbits may have 0 nodes of the job: these hold
 * nothing of a set that is bound to nodes. A rabbit holds nothing of a set if it is
 * not Ready, lacks a label that the set asks for, or others have one of the set's
 * keys there.
 *
 * The number of allocations of an AllocateAcrossServers set follows from its 'count',
 * or else from its 'scale': 1 means the fewest that fit, 5 (the default) one for each
 * rabbit, 10 as many as there are compute nodes, with even steps between them. If that
 * does not fit into the job's reservation, the nearest number that does is taken.
 *
 * 'opts' may be NULL.
 * Fails with EINVAL (text for the user or admin), ENOSPC (cannot be placed:
 * names the constraint and the numbers), EHOSTDOWN (the same, but a rabbit of
 * the job is not in order now) or ENOMEM.
 */
json_t *dws_allocation_sets (const struct dws_breakdowns *breakdowns,
                             json_t *nodes_per_rabbit,
                             const struct dws_allocation_opts *opts,
                             dws_error_t *error);

/* The merge patch that writes an entry of that array into its Servers object: a
 * new reference. Fails with EINVAL or ENOMEM.
 */
json_t *dws_allocation_patch (json_t *entry);

#endif /* !LIBDWS_ALLOCATION_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Compute location constraints of DirectiveBreakdowns as an RFC 31
 * constraint on the job.
 *
 * Only "physical" and "mandatory" restricts the choice of nodes: over the
 * network every node reaches every rabbit, and best effort is served by
 * giving the job storage next to its nodes. Storage that is made for the job
 * (jobdw) needs no constraint either, as its ssd is scheduled together with
 * the nodes. Storage that exists already (persistentdw) needs one: the nodes
 * must hang on rabbits that hold it. Every location must be met, so a rabbit
 * qualifies only if it holds a part of each set.
 */

#ifndef LIBDWS_LOCATION_H
#define LIBDWS_LOCATION_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/graph/topology.h"
#include "libdws/util/error.h"
#include "breakdowns.h"

/* Is an allocation set with this label (NULL: none) a part of a Lustre file system?
 */
bool dws_location_lustre (const char *label);

/* The Servers objects that must be read before dws_location_constraint() can
 * tell: a new array of {"name", "namespace"}, each once, mostly empty.
 * Fails with ENOMEM.
 */
json_t *dws_location_servers (const struct dws_breakdowns *breakdowns);

/* Every node reaches Lustre by network: its locations are left out, although the
 * storage controllers have them as physical and mandatory.
 *
 * The storage controllers mount an instance that is not of Lustre on as many
 * nodes of a rabbit as it has allocations there, and wait for ever if there are
 * more: 'nodes' is the number of nodes that the job asks for, and of a rabbit
 * with fewer allocations only so many nodes are let in.
 *
 * Return the constraint, a new object {"hostlist": [HOSTS]}, or a JSON null
 * if there is nothing to ask for. 'servers' is an array of Servers objects,
 * those of dws_location_servers(); NULL if there are none.
 * Fails with EINVAL (malformed, or a Servers object is missing), ENOSPC (no
 * compute node can do) or ENOMEM.
 */
json_t *dws_location_constraint (const struct dws_breakdowns *breakdowns,
                                 json_t *servers,
                                 const struct dws_topology *topo,
                                 int64_t nodes,
                                 dws_error_t *error);

/* The Servers objects of the job's own storage, in the form of dws_location_servers().
 */
json_t *dws_location_own (const struct dws_breakdowns *breakdowns);

/* The same as dws_location_constraint() of storage that was made for the job before it
 * has nodes: 'servers' are its own, as they were written. Where a rabbit has fewer
 * allocations than nodes, those that are best by 'goodness' (data_first.h) are let in.
 */
json_t *dws_location_data_first (const struct dws_breakdowns *breakdowns,
                                 json_t *servers,
                                 const struct dws_topology *topo,
                                 json_t *goodness,
                                 int64_t nodes,
                                 dws_error_t *error);

#endif /* !LIBDWS_LOCATION_H */

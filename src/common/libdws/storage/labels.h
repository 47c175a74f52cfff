/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The labels of rabbits that allocation sets ask for: which rabbits have them,
 * and as an RFC 31 constraint on the job, that it is placed next to those.
 */

#ifndef LIBDWS_LABELS_H
#define LIBDWS_LABELS_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/graph/topology.h"
#include "libdws/util/error.h"
#include "breakdowns.h"

/* The first of 'wanted' (array of "key=value", or NULL) that 'labels' (object, or
 * NULL) do not have, or NULL.
 */
const char *dws_labels_missing (json_t *wanted, json_t *labels);

/* Where a job on 'nodes' nodes (INT32_MAX: not known) may run by the labels that
 * the DirectiveBreakdowns ask for. 'storages' is an object of Storage objects by
 * name; a rabbit that has none is taken to have all labels.
 *
 * A set that needs all rabbits of the job restricts the job to the nodes of rabbits
 * with the labels. A set that needs only some rabbits does so while there are enough
 * such nodes: a larger job gets others as well, and may have to be refused later. With
 * 'anywhere' such a set restricts nothing, as it may lie on rabbits that are not the
 * job's.
 *
 * Returns the constraint, a new object {"hostlist": [HOSTS]}, or a JSON null if
 * there is nothing to ask for. Fails with ENOSPC (there are not enough such nodes)
 * or ENOMEM.
 */
json_t *dws_labels_constraint (const struct dws_breakdowns *breakdowns,
                               json_t *storages,
                               const struct dws_topology *topo,
                               int64_t nodes,
                               bool anywhere,
                               dws_error_t *error);

#endif /* !LIBDWS_LABELS_H */

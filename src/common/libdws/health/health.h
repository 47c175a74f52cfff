/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Derives from the state of rabbits and of their links which nodes rabbit jobs must
 * avoid, which are to be drained or undrained, and which DWS must not wait for.
 *
 * Each decision follows from the current state. The only memory is that
 * somebody has undrained a node while its link was still down.
 */

#ifndef LIBDWS_HEALTH_H
#define LIBDWS_HEALTH_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/graph/topology.h"
#include "libdws/storage/bytes.h"
#include "libdws/util/error.h"
#include "libutil/names.h"

/* The reasons of our drains, which identify them later. DWS_DRAIN_UNMOUNT is only the
 * beginning of the reason.
 */
#define DWS_DRAIN_LINK "rabbit: lost its PCIe link"
#define DWS_DRAIN_UNMOUNT "rabbit: failed to unmount"

/* The reason for a node that DWS is to unmount; the name of the workflow follows.
 */
#define DWS_DRAIN_MOUNTED "rabbit: still mounted by"

/* The reason for a node whose mounts are unknown, drained by the jobtap plugin; the name
 * of the job's workflow, without an instance, follows.
 */
#define DWS_DRAIN_MAYBE "rabbit: may be mounted by"

/* The nodes of this instance, as Flux sees them.
 */
struct dws_nodes;

/* Decode a response to resource.status: keys R, drain, offline, exclude.
 * Fails with EPROTO, EINVAL (R) or ENOMEM.
 */
struct dws_nodes *dws_nodes_create (json_t *status, dws_error_t *error);
void dws_nodes_destroy (struct dws_nodes *nodes);

/* Nodes that can be allocated to jobs: online, not drained and not excluded.
 */
size_t dws_nodes_up (const struct dws_nodes *nodes);

/* Nodes that could be allocated if all were online and none drained.
 */
size_t dws_nodes_all (const struct dws_nodes *nodes);

struct dws_health_policy {
    bool drain;             // drain nodes that lost their link
    bool soft_drain;        // give them the property
    json_t *queues;         // drain only nodes that have all properties of one
                            //  of these arrays; NULL: any node
    const struct dws_bytes *outside;   // that no job has; NULL: nothing
};

struct dws_health {
    json_t *rabbits;        // {NAME: {"up": BOOL, "capacity": BYTES,
                            //  "outside"?: BYTES}}: of all
    size_t away;            // nodes that are drained or offline
    char *bad;              // nodes that have no working rabbit
    char *unlinked;         // those of them whose rabbit is up, and that
                            //  are neither drained nor to be drained
    char *drain;            // nodes to drain, with reason DWS_DRAIN_LINK
    char *undrain;          // nodes to undrain
    json_t *ours;           // nodes that are drained for their link
    json_t *pardoned;       // those undrained by somebody else since
};

/* Decide. 'storages' is an array of Storage objects; without any, all rabbits
 * count as working. 'health' has been zeroed, or holds the last decision. On
 * failure, with EINVAL or ENOMEM, 'health' is unchanged.
 */
int dws_health_decide (struct dws_health *health,
                       json_t *storages,
                       const struct dws_topology *topo,
                       const struct dws_nodes *nodes,
                       const struct dws_health_policy *policy,
                       dws_error_t *error);
void dws_health_clear (struct dws_health *health);

/* The RFC 31 constraint of a job that needs a working rabbit, joined with the
 * one that it has ('constraint', NULL or null: none). Fails with ENOMEM.
 */
json_t *dws_health_constraint (json_t *constraint, dws_error_t *error);

/* How long nodes have been offline. DWS does not unmount on a Disabled node, so a node
 * that is still booting gets a grace period before it is Disabled.
 */
struct dws_absence {
    json_t *since;          // {HOST: TIME}, of those that are offline
    double grace;           // seconds, below zero: for ever
    double now;             // time, s
    double due;             // out: when the next grace ends, INFINITY: none
};

/* Add nodes that are offline to 'since', from 'now' on, and remove those that are online.
 * Fails with ENOMEM.
 */
int dws_health_absent (json_t *since, const struct dws_nodes *nodes,
                       double now);

/* The changes to SystemStatus.data.nodes ('known', NULL if empty): a new object
 * {HOST: "Disabled" or "Enabled"}, empty if there are none. Nodes are Disabled
 * while they are drained because they failed to unmount, or are in 'stuck'
 * ({HOST: true}; null: the node keeps its status while drained; NULL: none), and
 * once their broker has been offline for the grace. A Disabled node stays Disabled
 * while it is offline.
 * Fails with ENOMEM.
 */
json_t *dws_health_systemstatus (const struct dws_nodes *nodes,
                                 const struct dws_topology *topo,
                                 json_t *known,
                                 json_t *stuck,
                                 struct dws_absence *absence,
                                 dws_error_t *error);

/* Remove nodes that are not drained any more from the set 'stuck'.
 */
void dws_health_unstick (json_t *stuck, const struct dws_nodes *nodes);

#endif /* !LIBDWS_HEALTH_H */

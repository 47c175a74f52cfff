/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the state of rabbits and of their links means for nodes: which of them
 * rabbit jobs must avoid, which are to be drained or undrained, and which DWS
 * must not wait for.
 *
 * All is worked out anew from what is. The one thing remembered is that
 * somebody has undrained a node while its link was still down.
 */

#ifndef LIBDWS_HEALTH_H
#define LIBDWS_HEALTH_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/graph/topology.h"
#include "libdws/util/error.h"

/* The property of nodes that have no working rabbit.
 */
#define DWS_BAD_PROPERTY "badrabbit"

/* The reasons of our drains, by which they are known again. The second is how
 * the reason begins.
 */
#define DWS_DRAIN_LINK "rabbit: lost its PCIe link"
#define DWS_DRAIN_UNMOUNT "rabbit: failed to unmount"

/* Of a node that DWS is to unmount, for a workflow whose name follows.
 */
#define DWS_DRAIN_MOUNTED "rabbit: still mounted by"

/* Of a node that the jobtap plugin drains, as nobody could say whether it is: the
 * name of the workflow of that job follows, without an instance.
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

/* How many can be given to jobs: online, not drained and not excluded.
 */
size_t dws_nodes_up (const struct dws_nodes *nodes);

/* How many could be, were all online and none drained.
 */
size_t dws_nodes_all (const struct dws_nodes *nodes);

struct dws_health_policy {
    bool drain;             // drain nodes that lost their link
    bool soft_drain;        // give them the property
    json_t *queues;         // drain only nodes that have all properties of one
                            //  of these arrays; NULL: any node
    json_t *outside;        // {RABBIT: BYTES} that no job has; NULL: nothing
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
 * are taken to be well. 'health' has been zeroed, or holds the last decision.
 * It is unchanged on failure, with EINVAL or ENOMEM.
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

/* How long nodes have been offline. As DWS does not unmount on a node that is
 * Disabled, one that just has not come up yet is given a grace.
 */
struct dws_absence {
    json_t *since;          // {HOST: TIME}, of those that are offline
    double grace;           // seconds, below zero: for ever
    double now;             // time, s
    double due;             // out: when the next grace ends, INFINITY: none
};

/* Note in 'since' who is offline from 'now' on, and forget who is online.
 * Fails with ENOMEM.
 */
int dws_health_absent (json_t *since, const struct dws_nodes *nodes,
                       double now);

/* What has to change in SystemStatus.data.nodes ('known', NULL if empty): a
 * new object {HOST: "Disabled" or "Enabled"}, empty if nothing. Nodes are
 * Disabled while they are drained because they failed to unmount, or are in
 * 'stuck' ({HOST: true}; null: what it is it stays while drained; NULL: none), and
 * once their broker has been offline for the grace. One that is Disabled stays so
 * while it is offline.
 * Fails with ENOMEM.
 */
json_t *dws_health_systemstatus (const struct dws_nodes *nodes,
                                 const struct dws_topology *topo,
                                 json_t *known,
                                 json_t *stuck,
                                 struct dws_absence *absence,
                                 dws_error_t *error);

/* Take out of the set 'stuck' those that are not drained any more.
 */
void dws_health_unstick (json_t *stuck, const struct dws_nodes *nodes);

#endif /* !LIBDWS_HEALTH_H */

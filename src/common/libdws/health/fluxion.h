/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Where rabbits and nodes are in Fluxion's resource graph, which properties and ssd
 * states Fluxion has been sent, and which changes are still to be sent.
 */

#ifndef LIBDWS_FLUXION_H
#define LIBDWS_FLUXION_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/graph/topology.h"
#include "libdws/util/error.h"

/* The criteria of sched-fluxion-resource.find that give what is needed here,
 * in the format "jgf".
 */
#define DWS_FLUXION_CRITERIA "property=rabbit or property=badrabbit"

/* The response then also lists ssds that are down, and nodes that are down with
 * everything below them: for few such nodes only.
 */
#define DWS_FLUXION_CRITERIA_DOWN DWS_FLUXION_CRITERIA " or status=down"

struct dws_fluxion;

/* Decode the "R" of the response: a vertex with the property rabbit is above the
 * ssds and nodes of the rabbit that it names, and has the "ssdcount" of ssds. 'down':
 * R answers DWS_FLUXION_CRITERIA_DOWN; otherwise the states of ssds are unknown.
 * Fails with ENOMEM.
 */
struct dws_fluxion *dws_fluxion_create (json_t *R, bool down,
                                        dws_error_t *error);
void dws_fluxion_destroy (struct dws_fluxion *fx);

/* The number of rabbits in the graph.
 */
size_t dws_fluxion_count (const struct dws_fluxion *fx);

/* Set 'set' and 'clear' to the paths that must get and lose DWS_BAD_PROPERTY, so
 * that of all nodes those in 'bad' have it. 'fx' assumes that Fluxion applies both.
 * The caller frees the arrays. Fails with ENOMEM.
 */
int dws_fluxion_properties (struct dws_fluxion *fx,
                            const char *bad,
                            const struct dws_topology *topo,
                            json_t **set,
                            json_t **clear,
                            dws_error_t *error);

/* How a job uses ssds.
 */
enum dws_ssd_use {
    DWS_SSD_BUSY = 0,   // allocated to the job
    DWS_SSD_LEAVING,    // the job releases them next, but its storage stays
    DWS_SSD_KEPT,       // the job has released them, and its storage is still there
};

/* Note in the object 'uses' how one job uses 'ssds' (a set of paths). A later note
 * replaces an earlier one. Without memory the ssds count as unused.
 */
void dws_fluxion_use (json_t *uses, json_t *ssds, enum dws_ssd_use use);

/* Ssds that must change: an array of [PATH, "up" or "down"]; 'fx' assumes that
 * Fluxion applies it. 'rabbits' is that of struct dws_health. On a rabbit that has
 * lost capacity, or is used by others than jobs, only as many ssds are up as there
 * is room for. Ssds of leaving jobs go down first: Fluxion cannot have allocated them
 * to others yet. Ssds of other jobs stay up if free ones suffice: each ssd counts
 * once, as taken or as down. 'uses' may be NULL. Fails with ENOMEM.
 */
json_t *dws_fluxion_ssds (struct dws_fluxion *fx,
                          json_t *rabbits,
                          json_t *uses,
                          const struct dws_topology *topo,
                          dws_error_t *error);

#endif /* !LIBDWS_FLUXION_H */

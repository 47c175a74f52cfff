/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Where rabbits and nodes are in Fluxion's resource graph, what Fluxion has
 * been told of them, and what it has yet to be told.
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

/* With these it also tells which ssds are down; and which nodes are, with all that is
 * below them, so that it is for few such nodes only.
 */
#define DWS_FLUXION_CRITERIA_DOWN DWS_FLUXION_CRITERIA " or status=down"

struct dws_fluxion;

/* Decode the "R" of the response: the vertices with the property rabbit are
 * above the ssds and nodes of the rabbit that it names, and "ssdcount" of ssds.
 * With 'down' it is of the second criteria, else it is not known yet which ssds are up.
 * Fails with ENOMEM.
 */
struct dws_fluxion *dws_fluxion_create (json_t *R, bool down,
                                        dws_error_t *error);
void dws_fluxion_destroy (struct dws_fluxion *fx);

/* The number of rabbits in the graph.
 */
size_t dws_fluxion_count (const struct dws_fluxion *fx);

/* Which paths must get the property DWS_BAD_PROPERTY and which must lose it,
 * so that of all nodes those in 'bad' have it. From now on that is taken to
 * be so. The arrays are the caller's. Fails with ENOMEM.
 */
int dws_fluxion_properties (struct dws_fluxion *fx,
                            const char *bad,
                            const struct dws_topology *topo,
                            json_t **set,
                            json_t **clear,
                            dws_error_t *error);

/* What the ssds of a job are for it.
 */
enum dws_ssd_use {
    DWS_SSD_BUSY = 0,   // it has them
    DWS_SSD_LEAVING,    // it gives them back next, but its storage stays
    DWS_SSD_KEPT,       // it has given them back, and its storage is still there
};

/* Note that of the ssds of one job ('ssds', a set of paths) in the object 'uses'. What
 * is noted last counts. Without memory they are taken to be nobody's.
 */
void dws_fluxion_use (json_t *uses, json_t *ssds, enum dws_ssd_use use);

/* Which ssds must change: an array of [PATH, "up" or "down"]. From now on that
 * is taken to be so. 'rabbits' is that of struct dws_health. Of a rabbit that
 * has lost capacity, or of which others than jobs have some, as many ssds are up
 * as find room. Those of jobs that leave are the first to be down: Fluxion can not
 * have given them to others yet. Those that jobs have stay up if others will do: each
 * counts once, as taken or as down. 'uses' may be NULL. Fails with ENOMEM.
 */
json_t *dws_fluxion_ssds (struct dws_fluxion *fx,
                          json_t *rabbits,
                          json_t *uses,
                          const struct dws_topology *topo,
                          dws_error_t *error);

#endif /* !LIBDWS_FLUXION_H */

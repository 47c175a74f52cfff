/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Why a queued job has no nodes yet. The scheduler does not say, so count what it counts:
 * nodes that are up and idle, and the space of the rabbits next to them.
 */

#ifndef LIBDWS_SHORTAGE_H
#define LIBDWS_SHORTAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/storage/data_first.h"
#include "libdws/util/error.h"

/* A job needs 'groups' times 'nodes' nodes, and for each group 'gib' of the rabbit next
 * to these nodes; with 'chassis' each group is on a rabbit of its own. 'cores' of each
 * node, 0: the whole node.
 */
struct dws_need {
    int64_t groups;
    int64_t nodes;
    int64_t gib;
    int64_t cores;
    bool chassis;
};

/* Read what 'resources' (jobspec V1, with storage or without) ask for. Returns false if
 * they ask for something else than nodes.
 */
bool dws_need_read (json_t *resources, struct dws_need *need);

/* The nodes that a job may have next to one rabbit. 'rabbit' is "" for the nodes that
 * are next to none.
 */
struct dws_place {
    const char *rabbit;
    const char *state;          // of the rabbit
    int64_t space;              // bytes that are free on the rabbit
    int64_t free;               // nodes with enough idle cores
    int64_t busy;
    int64_t broken;             // up, without a working rabbit
    int64_t down;               // or drained
};

struct dws_places {
    struct dws_place *list;
    size_t count;
    bool limited;               // the job may not have all nodes
};

/* Count the nodes that a job may have by its constraint (RFC 31, NULL: all; one that
 * cannot be read is the scheduler's to refuse) and that have 'cores' idle cores (0: all).
 * 'rabbits' is an array of {name, state, free, nodes}, as dws.status lists them;
 * the strings of the result belong to it. 'bad' is a hostlist of nodes without a working
 * rabbit, which the job may not have; NULL: it may. Fails with EINVAL or ENOMEM.
 */
struct dws_places *dws_places_create (const struct dws_pool *pool,
                                      json_t *constraint,
                                      json_t *rabbits,
                                      const char *bad,
                                      int64_t cores,
                                      dws_error_t *error);
void dws_places_destroy (struct dws_places *places);

#define DWS_SHORTAGE_SIZE 200

/* Write what the job waits for, one clause, to 'buf'. Returns 'buf'.
 */
const char *dws_shortage_text (const struct dws_need *need,
                               const struct dws_places *places,
                               char buf[DWS_SHORTAGE_SIZE]);

#endif /* !LIBDWS_SHORTAGE_H */

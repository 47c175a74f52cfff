/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The scheduler's reservation of a job on each rabbit. Fluxion allocates whole ssds, so
 * a reservation may be far larger than the request.
 */

#ifndef LIBDWS_RESERVED_H
#define LIBDWS_RESERVED_H

#include <jansson.h>

#include "libdws/graph/topology.h"
#include "libdws/util/error.h"
#include "bytes.h"

/* Add the reservation of the job, from the "scheduling" key of R as Fluxion
 * (match-format rv1) or sched-rabbit writes it; nothing if R does not say. Fails with
 * ENOMEM.
 */
int dws_reserved (json_t *R, const struct dws_topology *topo,
                  struct dws_bytes *reserved, dws_error_t *error);

/* The ssds themselves: a new object {PATH: true}. Fails with ENOMEM.
 */
json_t *dws_reserved_ssds (json_t *R, dws_error_t *error);

#endif /* !LIBDWS_RESERVED_H */

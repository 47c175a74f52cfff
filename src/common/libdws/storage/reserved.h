/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the scheduler has set aside for a job on each rabbit. Fluxion hands
 * out whole ssds, so that this may be a lot more than the job has asked for.
 */

#ifndef LIBDWS_RESERVED_H
#define LIBDWS_RESERVED_H

#include <jansson.h>

#include "libdws/graph/topology.h"
#include "libdws/util/error.h"

/* What the scheduler has set aside for the job, from the "scheduling" key of
 * R as Fluxion (match-format rv1) or sched-rabbit writes it: a new object
 * {RABBIT: BYTES}, empty if R does not say. Fails with ENOMEM.
 */
json_t *dws_reserved (json_t *R,
                      const struct dws_topology *topo,
                      dws_error_t *error);

/* The ssds themselves: a new object {PATH: true}. Fails with ENOMEM.
 */
json_t *dws_reserved_ssds (json_t *R, dws_error_t *error);

#endif /* !LIBDWS_RESERVED_H */

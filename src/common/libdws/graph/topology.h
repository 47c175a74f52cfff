/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The rabbitmapping file, which names the compute nodes of each rabbit, indexed both
 * ways. Lookups cost the same on any machine size.
 */

#ifndef LIBDWS_TOPOLOGY_H
#define LIBDWS_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/util/error.h"

struct dws_topology;

/* Index the rabbitmapping object
 *   {"computes": {HOST: RABBIT, ...},
 *    "rabbits": {RABBIT: {"capacity": BYTES, "hostlist": HOSTS}, ...}}
 * The two halves must agree. A rabbit may have no computes ("hostlist": "").
 * The result copies all it needs of 'mapping'. Fails with EINVAL or ENOMEM.
 */
struct dws_topology *dws_topology_create (json_t *mapping,
                                          dws_error_t *error);
void dws_topology_destroy (struct dws_topology *topo);

/* The name of the rabbit next to 'host', or NULL with errno ENOENT.
 * The string belongs to 'topo'.
 */
const char *dws_topology_rabbit (const struct dws_topology *topo,
                                 const char *host);

/* Rabbits are numbered from 0 in the order of the mapping. Index of a rabbit
 * by name, or -1 with errno ENOENT.
 */
size_t dws_topology_count (const struct dws_topology *topo);
size_t dws_topology_host_count (const struct dws_topology *topo);
int dws_topology_find (const struct dws_topology *topo, const char *rabbit);
int dws_topology_find_host (const struct dws_topology *topo,
                            const char *host);

/* name, RFC 29 hostlist of its computes and capacity in bytes, by number.
 * NULL or -1 with errno ENOENT if out of range.
 */
const char *dws_topology_name (const struct dws_topology *topo, int index);
const char *dws_topology_hostlist (const struct dws_topology *topo,
                                   int index);
int64_t dws_topology_capacity (const struct dws_topology *topo, int index);

#endif /* !LIBDWS_TOPOLOGY_H */

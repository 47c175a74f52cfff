/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Hosts and rabbits that keep a workflow waiting for its storage, and rabbits that
 * hold some, read from its Servers objects. Results are RFC 29 hostlists that the
 * caller frees, "" for none.
 */

#ifndef LIBDWS_SERVERS_H
#define LIBDWS_SERVERS_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/graph/topology.h"
#include "libdws/util/error.h"

/* The hosts of the job (hostlist 'hosts') whose rabbit has not made all of
 * its allocations, from an array of Servers objects. '*shared' tells whether
 * one of them is of a file system that spans rabbits, so that no host can do
 * without. Fails with EINVAL ('hosts') or ENOMEM.
 */
char *dws_servers_lagging (json_t *servers,
                           const char *hosts,
                           const struct dws_topology *topo,
                           bool *shared,
                           dws_error_t *error);

/* The rabbits that have not made all of their allocations. Fails with ENOMEM.
 */
char *dws_servers_unready (json_t *servers, dws_error_t *error);

/* The rabbits that hold allocations. Fails with ENOMEM.
 */
char *dws_servers_allocated (json_t *servers, dws_error_t *error);

#endif /* !LIBDWS_SERVERS_H */

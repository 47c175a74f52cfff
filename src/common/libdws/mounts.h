/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Which hosts and rabbits keep a workflow waiting: read from its ClientMount
 * and Servers objects. Results are RFC 29 hostlists that the caller frees,
 * "" for none.
 */

#ifndef LIBDWS_MOUNTS_H
#define LIBDWS_MOUNTS_H

#include <stdbool.h>
#include <jansson.h>

#include "error.h"
#include "topology.h"

/* The compute nodes that have not got all their mounts into 'state'
 * ("mounted" or "unmounted"), from an array of a workflow's ClientMounts.
 * One that reports nothing has not. Fails with ENOMEM.
 */
char *dws_mounts_lagging (json_t *clientmounts,
                          const char *state,
                          dws_error_t *error);

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

/* The hosts in 'hosts' or 'more' (NULL is the same as ""), or in 'hosts' but
 * not in 'less'. Fails with EINVAL or ENOMEM.
 */
char *dws_hosts_join (const char *hosts, const char *more,
                      dws_error_t *error);
char *dws_hosts_subtract (const char *hosts, const char *less,
                          dws_error_t *error);

/* The number of hosts, 0 if 'hosts' is NULL or malformed.
 */
size_t dws_hosts_count (const char *hosts);

#endif /* !LIBDWS_MOUNTS_H */

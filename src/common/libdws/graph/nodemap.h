/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Which directory on a rabbit belongs to which compute node: for the
 * containers of a job, which see the storage of all nodes of their rabbit.
 */

#ifndef LIBDWS_NODEMAP_H
#define LIBDWS_NODEMAP_H

#include "libdws/util/error.h"
#include "topology.h"

/* "RABBIT=HOSTS;RABBIT=HOSTS" for the hosts of a job (a hostlist), each rabbit
 * once. The storage of host number N (from 0) in the list of a rabbit is the
 * directory RABBIT-N there. Hosts without a rabbit are left out.
 * The caller frees the result. Fails with EINVAL or ENOMEM.
 */
char *dws_nodemap (const char *hosts,
                   const struct dws_topology *topo,
                   dws_error_t *error);

#endif /* !LIBDWS_NODEMAP_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The directory on a rabbit of each compute node, for the containers of a job, which
 * see the storage of all nodes of their rabbit.
 */

#ifndef LIBDWS_NODEMAP_H
#define LIBDWS_NODEMAP_H

#include <jansson.h>

#include "libdws/util/error.h"
#include "topology.h"

struct dws_nodemap_opts {
    const char *left_out;   // hosts that the job does without, or NULL
    json_t *storages;       // borrowed: Storage objects by name, or NULL
};

/* "RABBIT=HOSTS;RABBIT=HOSTS" for the hosts of a job (a hostlist), each rabbit
 * once. The storage of host number N (from 0) in the list of a rabbit is the
 * directory RABBIT-N there: NNF gives its allocations to the hosts in the order in
 * which the rabbit's Storage has them. Hosts without a rabbit are not there, nor is a
 * rabbit whose hosts are all waived. A single waived host keeps its place: NNF gave it
 * an allocation, which it has failed to mount.
 * The caller frees the result. Fails with EINVAL or ENOMEM.
 */
char *dws_nodemap (const char *hosts,
                   const struct dws_topology *topo,
                   const struct dws_nodemap_opts *opts,
                   dws_error_t *error);

#endif /* !LIBDWS_NODEMAP_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Where users want their jobs to be, as an RFC 31 constraint: on the nodes next
 * to rabbits, and on no others. Nodes without a rabbit are next to none.
 */

#ifndef LIBDWS_CONSTRAINT_H
#define LIBDWS_CONSTRAINT_H

#include <stdint.h>
#include <jansson.h>

#include "libdws/graph/topology.h"
#include "libdws/util/error.h"

/* The rabbits of 'hosts' (RFC 29), as a hostlist, each once, that the caller
 * frees. A host may be a rabbit itself. Fails with ENOENT (there is none), EINVAL
 * or ENOMEM.
 */
char *dws_constraint_rabbits (const char *hosts,
                              const struct dws_topology *topo,
                              dws_error_t *error);

/* Return a new object {"hostlist": [HOSTS]}, the nodes next to 'rabbits' (RFC 29).
 * 'nodes' is how many the job needs, INT32_MAX if that is not known. Fails with
 * EINVAL (an unknown rabbit), ENOSPC (fewer nodes) or ENOMEM.
 */
json_t *dws_constraint_make (const char *rabbits,
                             const struct dws_topology *topo,
                             int64_t nodes,
                             dws_error_t *error);

/* Join two constraints of this form, each of which may be a JSON null: a new reference.
 * Fails with ENOSPC if fewer nodes satisfy both than the job needs, or with ENOMEM.
 */
json_t *dws_constraint_join (json_t *a,
                             json_t *b,
                             int64_t nodes,
                             dws_error_t *error);

#endif /* !LIBDWS_CONSTRAINT_H */

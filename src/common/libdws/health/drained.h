/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Nodes that are drained for one of our reasons.
 */

#ifndef LIBDWS_DRAINED_H
#define LIBDWS_DRAINED_H

#include <jansson.h>

#include "libdws/util/error.h"

/* In a response to resource.status, the ranks (idsets, maybe empty) of the nodes that
 * are drained for just this reason: '*in' of those among 'hosts' (a hostlist), '*out'
 * of the others. Returns 0, or -1 with errno EPROTO, EINVAL (R, hosts) or ENOMEM.
 */
int dws_drained_for (json_t *status, const char *reason, const char *hosts,
                     char **in, char **out, dws_error_t *error);

/* The nodes that are drained for DWS_DRAIN_MAYBE (health.h): a new object {"JOBID":
 * idset of ranks}. NULL with errno EPROTO or ENOMEM.
 */
json_t *dws_drained_maybe (json_t *status, dws_error_t *error);

#endif /* !LIBDWS_DRAINED_H */

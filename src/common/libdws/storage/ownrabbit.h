/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Jobspec that asks for rabbits by itself, besides its directives.
 */

#ifndef LIBDWS_OWNRABBIT_H
#define LIBDWS_OWNRABBIT_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/util/error.h"

/* Check the resources (jobspec V1, an array) of a job as it is submitted. Storage
 * ('ssd', 'rabbit') is what directives ask for, within the limits of the site:
 * with directives there is no other way. A job without directives may have it, and
 * nodes that are rabbits ('storage_node'), if the site says so ('allowed').
 * Returns 0, or -1 with errno EPERM and a text for the user.
 */
int dws_ownrabbit_check (json_t *resources,
                         bool directives,
                         bool allowed,
                         dws_error_t *error);

#endif /* !LIBDWS_OWNRABBIT_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * More than this is a mistake or malice, and is refused before time or memory are
 * spent on it: by the jobtap plugin, the module, the scheduler and the commands alike.
 * The largest machines have some ten thousand nodes.
 */

#ifndef LIBDWS_BOUNDS_H
#define LIBDWS_BOUNDS_H

#include <stdbool.h>
#include <jansson.h>

#include "error.h"

#define DWS_MAX_HOSTS 65536 // ranks of an instance, too
#define DWS_MAX_HOST_NAME 255
#define DWS_MAX_CHILDREN 65536 // cores or gpus of a node
#define DWS_MAX_VERTICES 2000000
#define DWS_MAX_NODES_PER_RABBIT 65536
#define DWS_MAX_ALLOCATIONS 100000
#define DWS_DIRECTIVE_BYTES 65536 // as they are submitted
#define DWS_DIRECTIVE_COUNT 64
#define DWS_MAX_DIRECTIVE_BYTES 1048576 // with presets expanded
#define DWS_MAX_DIRECTIVE_COUNT 1024
#define DWS_MAX_WORDS 64 // of one directive
#define DWS_MAX_LIST 16 // words of one list in a directive

/* Bounds on the resources, and on the constraints, of one job.
 */
#define DWS_MAX_DEPTH 64 // arrays and objects in each other: 32 times "and"
#define DWS_MAX_VALUES 1024 // without entries of "hostlist" and "ranks"
#define DWS_MAX_TEXT 65536 // bytes of all strings, of an empty one 1

/* Does a user's job ask for no more than that? 'o' is its resources (RFC 14) or its
 * constraints (RFC 31), NULL if it has none; hosts are counted in lists of
 * "hostlist". With 'ours' there is room for what flux-dws itself adds to a job. Fails
 * with EINVAL and a text for the user that begins with 'what'.
 */
int dws_bounds_check (json_t *o, const char *what, bool ours,
                      dws_error_t *error);

#endif /* !LIBDWS_BOUNDS_H */

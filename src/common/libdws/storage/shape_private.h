/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: the resources of a jobspec, as far as storage depends on them.
 */

#ifndef LIBDWS_SHAPE_PRIVATE_H
#define LIBDWS_SHAPE_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/util/error.h"

struct shape {
    json_t *top;          // borrowed: the one top level entry with nodes
    size_t top_index;
    json_t *node;         // borrowed: the node entry, 'top' or within it
    int64_t groups;       // count of slots or chassis
    int64_t per_group;    // nodes in each
    bool chassis;         // a group is all there is below one rabbit
};

/* Fails with EINVAL and a text for the user.
 */
int shape_read (struct shape *shape, json_t *resources, dws_error_t *error);

/* The type of a resource, "" without one.
 */
const char *shape_type (json_t *resource);

#endif /* !LIBDWS_SHAPE_PRIVATE_H */

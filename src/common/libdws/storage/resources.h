/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * DirectiveBreakdowns + jobspec resources -> the resources to schedule.
 */

#ifndef LIBDWS_RESOURCES_H
#define LIBDWS_RESOURCES_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "libdws/directive/directive.h"
#include "libdws/util/error.h"
#include "breakdowns.h"

struct dws_resources_opts {
    int64_t min_gib;      // smallest allocation, GiB (0: as NNF makes it)
    json_t *maximums;     // borrowed: [rabbit.policy.maximums], a map of
                          // file system type to GiB per node (sizes.h), or NULL
    const struct dws_directives *directives; // borrowed: for the texts of these,
                          // or NULL
    int64_t rabbit_bytes; // the most that a job can have of one rabbit
                          // (0: not known)
    bool anywhere;        // sets of AllocateAcrossServers and
                          // AllocateSingleServer need not lie next to the
                          // nodes: the scheduler is not asked for them
    bool placed;          // all storage is there already: the scheduler is
                          // not asked for any
    int64_t total_bytes;  // the same of all rabbits together
};

/* Add the storage that 'breakdowns' ask for to 'resources' (jobspec V1, an array).
 * Returns a new reference; the input is not changed.
 * - {node} becomes {slot[rabbit]{node, ssd}}, {chassis{node}} becomes
 *   {chassis{node, ssd}}; an ssd counts GiB.
 * - An ssd of the input is dropped: the storage that the breakdowns ask for, within
 *   the limits, is all the storage in the result. Breakdowns without storage
 *   (persistentdw) add none.
 * Fails with EINVAL (the request is wrong, text for the user) or ENOMEM.
 * 'opts' may be NULL.
 */
json_t *dws_resources_apply (json_t *resources,
                             const struct dws_breakdowns *breakdowns,
                             const struct dws_resources_opts *opts,
                             dws_error_t *error);

/* True if these resources (RFC 14) have an ssd, which only a scheduler that knows
 * rabbits can allocate.
 */
bool dws_resources_has_ssd (json_t *resources);

/* Are 'resources' of a form to which storage can be added? Fails with EINVAL and a text
 * for the user.
 */
int dws_resources_check (json_t *resources, dws_error_t *error);

/* The number of nodes that 'resources' ask for, at least; INT32_MAX if they do
 * not tell.
 */
int64_t dws_resources_nodes (json_t *resources);

#endif /* !LIBDWS_RESOURCES_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Directives with two sizes, capacity=10TiB..40TiB: the scheduler and DWS are asked for
 * the first. When the storage is laid out it may grow up to the second.
 *
 * 'ranges' is what dws_commands_ranges() makes of a job's directives.
 */

#ifndef LIBDWS_GROWTH_H
#define LIBDWS_GROWTH_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "breakdown.h"

/* What the set of a DirectiveBreakdown of this name may have in all, if it has
 * 'minimum' for the first size: the second in the same ratio. Returns false if it does
 * not grow, as the metadata of Lustre does not. DWS names breakdowns and Servers
 * by the workflow and the place of the directive in it.
 */
bool dws_growth_total (json_t *ranges, const char *name, const char *label,
                       int64_t minimum, int64_t *total);

/* What a job with these resources and directives would ask for with the second sizes in
 * the place of the first (breakdown.h).
 */
void dws_growth_asked (json_t *resources, json_t *directives, json_t *ranges,
                       struct dws_asked *asked);

/* The ranges with upper bounds so that the job asks for no more than this: a new
 * reference. All are lowered by the same part. 'maximums' is [rabbit.policy.maximums],
 * or NULL. Fails with ENOMEM.
 */
json_t *dws_growth_within (json_t *ranges, json_t *resources,
                           json_t *directives, const struct dws_asked *most,
                           json_t *maximums);

/* What they have got, by 'servers', {NAME: {LABEL: {"size", "count"}}} as
 * dws_growth_sizes() makes it of each: a new object, by the name of the file system,
 * {NAME: {"type", "least", "most", "bytes"}}. The bytes are those of one allocation, for
 * Lustre of all that have data; 0: not known. Fails with ENOMEM.
 */
json_t *dws_growth_given (json_t *ranges, json_t *directives, json_t *servers);

/* The allocations that a Servers object asks for, or the patch of one: a new object
 * {LABEL: {"size", "count"}}. Fails with ENOMEM.
 */
json_t *dws_growth_sizes (json_t *servers);

#endif /* !LIBDWS_GROWTH_H */

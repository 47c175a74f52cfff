/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The bytes that jobs hold on each rabbit, as maps {RABBIT: BYTES}: one of
 * each job, and their sum.
 */

#ifndef DWS_SPACE_H
#define DWS_SPACE_H

#include <jansson.h>

/* What a layout, as dws_allocation_sets() makes it, takes: a new map, or NULL
 * with errno ENOMEM.
 */
json_t *space_of (json_t *layout);

/* Add a job's map to the sum. Without memory the sum stays too low, which
 * does no harm: the storage controllers refuse what does not fit.
 */
void space_take (json_t *sum, json_t *space);

/* Take a job's map, which may be NULL, off the sum again.
 */
void space_give_back (json_t *sum, json_t *space);

#endif /* !DWS_SPACE_H */

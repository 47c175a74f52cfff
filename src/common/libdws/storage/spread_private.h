/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: the allocation sets whose number of allocations is ours to choose.
 */

#ifndef LIBDWS_SPREAD_PRIVATE_H
#define LIBDWS_SPREAD_PRIVATE_H

#include "layout_private.h"

/* Place such a set: decide how many allocations it gets, and where. Fails
 * like place_all().
 */
int spread_place (struct layout *lay,
                  struct layout_place *p,
                  dws_error_t *error);

#endif /* !LIBDWS_SPREAD_PRIVATE_H */

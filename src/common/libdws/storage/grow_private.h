/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: let sets that have been placed grow into what is free.
 */

#ifndef LIBDWS_GROW_PRIVATE_H
#define LIBDWS_GROW_PRIVATE_H

#include <jansson.h>

#include "layout_private.h"

/* All sets have been placed. Those of directives with two sizes ('ranges', as in
 * growth.h) grow, in whole GiB, as far as their rabbits have room: first all by the same
 * part of what they may grow by, then one after the other. Where they lie, and how many
 * allocations there are, stays.
 * Of each rabbit 'promised' ({RABBIT: BYTES}, or NULL) is left to others, and the job
 * gets no more than it has there and 'most' (likewise; NULL: no such bound) says.
 */
void grow_all (struct layout *lay, json_t *ranges, json_t *promised,
               json_t *most);

#endif /* !LIBDWS_GROW_PRIVATE_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: sizes of sets.
 */

#ifndef LIBDWS_SIZES_PRIVATE_H
#define LIBDWS_SIZES_PRIVATE_H

#include <stdbool.h>

#include "allocset_private.h"
#include "shape_private.h"
#include "sizes.h"

/* What a directive asks for, as a set of the type that the storage system makes
 * of it. Returns false if that cannot be told.
 */
bool sizes_foresee (struct alloc_set *set, const char *directive);

#endif /* !LIBDWS_SIZES_PRIVATE_H */

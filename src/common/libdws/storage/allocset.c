/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Arithmetic of one allocation set; see allocset_private.h.
 */

#include "allocset_private.h"
#include "drives.h"

bool alloc_set_unbound (const struct alloc_set *set)
{
    return set->strategy == ALLOC_ACROSS || set->strategy == ALLOC_SINGLE;
}

int64_t div_up (int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

static int64_t least_of (const struct alloc_set *set, int64_t least)
{
    int64_t made = dws_drives_least (set->label);

    return made > least ? made : least;
}

int64_t alloc_set_size (const struct alloc_set *set, int64_t count,
                        int64_t least)
{
    int64_t size = div_up (set->minimum, count);

    least = least_of (set, least);
    return size > least ? size : least;
}

int64_t alloc_set_most (const struct alloc_set *set, int64_t least)
{
    least = least_of (set, least);
    if (least <= 0)
        return INT64_MAX;
    return set->minimum > least ? set->minimum / least : 1;
}

int64_t bytes_to_gib (int64_t bytes)
{
    return div_up (bytes, GIB);
}

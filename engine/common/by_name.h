/* SPDX-License-Identifier: LGPL-3.0-only */
/* by_name.h - arrays of structs that are sorted by their first member, a name.
 */
#ifndef SOLO_COMMON_BY_NAME_H
#define SOLO_COMMON_BY_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Where the one with this name of 'len' bytes is, or belongs.
 */
static inline size_t by_name_position (const void *array,
                                       size_t count,
                                       size_t size,
                                       const char *name,
                                       size_t len,
                                       bool *found)
{
    size_t lo = 0;
    size_t hi = count;

    *found = false;
    while (lo < hi && !*found) {
        size_t mid = lo + (hi - lo) / 2;
        const char *s = *(char *const *)((const char *)array + mid * size);
        int cmp = strncmp (name, s, len);

        if (cmp > 0)
            lo = mid + 1;
        else if (cmp < 0 || s[len] != '\0')
            hi = mid;
        else {
            lo = mid;
            *found = true;
        }
    }
    return lo;
}

#endif // !SOLO_COMMON_BY_NAME_H

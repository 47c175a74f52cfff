/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See space.h.
 */

#include <errno.h>
#include <limits.h>

#include "space.h"

static int add (json_t *map, const char *rabbit, json_int_t bytes)
{
    json_int_t n = json_integer_value (json_object_get (map, rabbit));

    if (bytes > 0 && n > LLONG_MAX - bytes)
        n = LLONG_MAX;
    else
        n += bytes;
    if (n > 0)
        return json_object_set_new (map, rabbit, json_integer (n));
    json_object_del (map, rabbit);
    return 0;
}

static int add_set (json_t *map, json_t *set)
{
    json_int_t size = 0;
    json_t *storage = NULL;
    json_t *entry;
    size_t index;

    json_unpack (set, "{s:I s:o}", "allocationSize", &size,
                 "storage", &storage);
    json_array_foreach (storage, index, entry) {
        const char *rabbit;
        json_int_t count;
        json_int_t bytes;

        if (json_unpack (entry, "{s:s s:I}", "name", &rabbit,
                         "allocationCount", &count) < 0
            || size < 0 || count < 0)
            continue;
        if (__builtin_mul_overflow (size, count, &bytes))
            bytes = LLONG_MAX;
        if (add (map, rabbit, bytes) < 0)
            return -1;
    }
    return 0;
}

json_t *space_of (json_t *layout)
{
    json_t *map;
    json_t *entry;
    json_t *set;
    size_t i;
    size_t j;

    if (!(map = json_object ()))
        goto nomem;
    json_array_foreach (layout, i, entry) {
        json_array_foreach (json_object_get (entry, "allocationSets"),
                            j, set) {
            if (add_set (map, set) < 0)
                goto nomem;
        }
    }
    return map;
nomem:
    json_decref (map);
    errno = ENOMEM;
    return NULL;
}

void space_take (json_t *sum, json_t *space)
{
    const char *rabbit;
    json_t *bytes;

    json_object_foreach (space, rabbit, bytes)
        (void)add (sum, rabbit, json_integer_value (bytes));
}

void space_give_back (json_t *sum, json_t *space)
{
    const char *rabbit;
    json_t *bytes;

    json_object_foreach (space, rabbit, bytes)
        (void)add (sum, rabbit, -json_integer_value (bytes));
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See bytes.h.
 */

#include <errno.h>

#include "bytes.h"

int64_t dws_bytes_get (json_t *map, const char *rabbit)
{
    return json_integer_value (json_object_get (map, rabbit));
}

int dws_bytes_add (json_t *map, const char *rabbit, int64_t n)
{
    if (__builtin_add_overflow (n, dws_bytes_get (map, rabbit), &n))
        n = INT64_MAX;
    if (n <= 0)
        (void)json_object_del (map, rabbit);
    else if (json_object_set_new (map, rabbit, json_integer (n)) < 0) {
        errno = ENOMEM;
        return -1;
    }
    return 0;
}

void dws_bytes_add_map (json_t *map, json_t *other, int sign)
{
    const char *rabbit;
    json_t *bytes;

    json_object_foreach (other, rabbit, bytes)
        (void)dws_bytes_add (map, rabbit, sign * json_integer_value (bytes));
}

int64_t dws_bytes_sum (json_t *map, int64_t most)
{
    const char *rabbit;
    json_t *bytes;
    int64_t sum = 0;

    json_object_foreach (map, rabbit, bytes) {
        if (__builtin_add_overflow (sum, json_integer_value (bytes), &sum)
            || sum > most)
            return most;
    }
    return sum;
}

bool dws_bytes_meet (json_t *a, json_t *b)
{
    const char *rabbit;
    json_t *value;

    json_object_foreach (a, rabbit, value) {
        if (json_object_get (b, rabbit))
            return true;
    }
    return false;
}

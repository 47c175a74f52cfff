/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See bytes.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/hosts.h"
#include "libdws/util/jsonmake.h"
#include "libutil/errno_safe.h"
#include "bytes.h"

static size_t count_of (const struct dws_bytes *map)
{
    return map ? map->count : 0;
}

void dws_bytes_clear (struct dws_bytes *map)
{
    ERRNO_SAFE_BLOCK;

    for (size_t i = 0; i < map->count; i++)
        free (map->list[i].rabbit);
    free (map->list);
    *map = (struct dws_bytes){ 0 };
}

/* The index of the rabbit's entry, or of where it belongs.
 */
static size_t find (const struct dws_bytes *map, const char *rabbit, bool *found)
{
    size_t low = 0;
    size_t high = count_of (map);

    *found = false;
    while (low < high && !*found) {
        size_t i = (low + high) / 2;
        int order = strcmp (map->list[i].rabbit, rabbit);

        if (order < 0)
            low = i + 1;
        else
            high = i;
        if ((*found = order == 0))
            low = i;
    }
    return low;
}

int64_t dws_bytes_get (const struct dws_bytes *map, const char *rabbit)
{
    bool found;
    size_t i = find (map, rabbit, &found);

    return found ? map->list[i].bytes : 0;
}

static void insert (struct dws_bytes *map, size_t i, const char *rabbit, int64_t n)
{
    struct dws_bytes_of *list = map->list;
    char *copy;

    if (map->count == map->size) {
        size_t size = map->size * 2 + 4;

        if ((list = reallocarray (map->list, size, sizeof (*list)))) {
            map->list = list;
            map->size = size;
        }
    }
    if (!list || !(copy = strdup (rabbit))) {
        map->lost = true;
        return;
    }
    memmove (&list[i + 1], &list[i], (map->count++ - i) * sizeof (*list));
    list[i] = (struct dws_bytes_of){ .rabbit = copy, .bytes = n };
}

void dws_bytes_add (struct dws_bytes *map, const char *rabbit, int64_t n)
{
    bool found;
    size_t i = find (map, rabbit, &found);
    struct dws_bytes_of *of;

    if (!found) {
        if (n > 0)
            insert (map, i, rabbit, n);
        return;
    }
    of = &map->list[i];
    if (__builtin_add_overflow (of->bytes, n, &of->bytes))
        of->bytes = INT64_MAX;
    if (of->bytes <= 0) {
        free (of->rabbit);
        memmove (of, of + 1, (--map->count - i) * sizeof (*of));
    }
}

void dws_bytes_add_map (struct dws_bytes *map, const struct dws_bytes *other,
                        int sign)
{
    for (size_t i = 0; i < count_of (other); i++)
        dws_bytes_add (map, other->list[i].rabbit, sign * other->list[i].bytes);
}

int64_t dws_bytes_sum (const struct dws_bytes *map, int64_t most)
{
    int64_t sum = 0;

    for (size_t i = 0; i < count_of (map); i++) {
        if (__builtin_add_overflow (sum, map->list[i].bytes, &sum) || sum > most)
            return most;
    }
    return sum;
}

bool dws_bytes_add_excess (struct dws_bytes *map, const struct dws_bytes *a,
                           const struct dws_bytes *b)
{
    bool any = false;

    for (size_t i = 0; i < count_of (a); i++) {
        int64_t n = a->list[i].bytes - dws_bytes_get (b, a->list[i].rabbit);

        any |= n > 0;
        if (n > 0 && map)
            dws_bytes_add (map, a->list[i].rabbit, n);
    }
    return any;
}

char *dws_bytes_rabbits (const struct dws_bytes *map)
{
    const char **names = calloc (count_of (map) + 1, sizeof (names[0]));
    char *s = NULL;

    for (size_t i = 0; names && i < count_of (map); i++)
        names[i] = map->list[i].rabbit;
    if (names)
        s = dws_hosts_merge (names, count_of (map), NULL);
    ERRNO_SAFE (free (names));
    return s;
}

void dws_bytes_decode (struct dws_bytes *map, json_t *o)
{
    const char *rabbit;
    json_t *bytes;

    json_object_foreach (o, rabbit, bytes)
        dws_bytes_add (map, rabbit, json_integer_value (bytes));
}

json_t *dws_bytes_encode (const struct dws_bytes *map)
{
    json_t *o = json_object ();

    for (size_t i = 0; i < count_of (map); i++)
        dws_json_set (&o, map->list[i].rabbit, json_integer (map->list[i].bytes));
    return o;
}

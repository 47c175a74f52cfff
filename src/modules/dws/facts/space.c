/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See space.h.
 */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "libutil/errno_safe.h"
#include "facts/space.h"

struct space {
    json_t *used;               // the sum of all claims
    json_t *held;               // job id -> what the claim is
    bool known;
};

struct space *space_create (void)
{
    struct space *space;

    if (!(space = calloc (1, sizeof (*space))))
        return NULL;
    if (!(space->used = json_object ()) || !(space->held = json_object ())) {
        space_destroy (space);
        errno = ENOMEM;
        return NULL;
    }
    return space;
}

void space_destroy (struct space *space)
{
    if (space) {
        ERRNO_SAFE_BLOCK;
        json_decref (space->used);
        json_decref (space->held);
        free (space);
    }
}

json_t *space_used (const struct space *space)
{
    return space->used;
}

bool space_known (const struct space *space)
{
    return space->known;
}

void space_set_known (struct space *space)
{
    space->known = true;
}

/* Claims
 */

static int add_bytes (json_t *map, const char *rabbit, json_int_t bytes)
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
        if (add_bytes (map, rabbit, bytes) < 0)
            return -1;
    }
    return 0;
}

/* What a layout takes, by rabbit: a new map.
 */
static json_t *sum_layout (json_t *layout)
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

static void add_map (json_t *sum, json_t *map, int sign)
{
    const char *rabbit;
    json_t *bytes;

    json_object_foreach (map, rabbit, bytes)
        (void)add_bytes (sum, rabbit, sign * json_integer_value (bytes));
}

int space_claim (struct space *space, struct claim *claim, json_t *layout)
{
    json_t *more;

    if (!(more = sum_layout (layout)))
        return -1;
    if (!claim->bytes && !(claim->bytes = json_object ())) {
        json_decref (more);
        errno = ENOMEM;
        return -1;
    }
    add_map (claim->bytes, more, 1);
    add_map (space->used, more, 1);
    json_decref (more);
    return 0;
}

void space_free (struct space *space, struct claim *claim)
{
    add_map (space->used, claim->bytes, -1);
    json_decref (claim->bytes);
    claim->bytes = NULL;
}

/* Claims that the scheduler is told of
 */

json_t *space_held (const struct space *space)
{
    return space->held;
}

int space_hold (struct space *space, uint64_t jobid, struct claim *claim)
{
    char key[32];

    snprintf (key, sizeof (key), "%" PRIu64, jobid);
    if (json_object_set (space->held, key, claim->bytes) < 0) {
        errno = ENOMEM;
        return -1;
    }
    claim->held = true;
    return 0;
}

void space_let_go (struct space *space, uint64_t jobid, struct claim *claim)
{
    char key[32];

    snprintf (key, sizeof (key), "%" PRIu64, jobid);
    (void)json_object_del (space->held, key);
    claim->held = false;
}

void space_hold_failed (struct claim *claim)
{
    claim->held = false;
}

void space_held_clear (struct space *space)
{
    json_object_clear (space->held);
}

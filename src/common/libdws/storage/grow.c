/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See grow_private.h.
 */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "grow_private.h"
#include "growth.h"

/* How far a set grows: so many parts of WHOLE.
 */
#define WHOLE (INT64_C (1) << 30)

static bool grows (const struct layout_place *p)
{
    return p->top > p->size;
}

/* The size that a set gets from what the directive wants in all.
 */
static int64_t top_of (const struct layout *lay, const struct layout_place *p,
                       json_t *ranges)
{
    int64_t n = 0;
    int64_t total;

    if (!dws_growth_total (ranges, p->breakdown->name, p->set->label,
                           p->set->minimum, &total))
        return p->size;
    for (size_t r = 0; r < lay->nrabbits; r++)
        n += p->counts[r];
    return alloc_set_roams (p->set) && n > 0 ? div_up (total, n) : total;
}

static int64_t size_at (const struct layout_place *p, int64_t part)
{
    int64_t size;

    if (part == WHOLE)
        return p->top;
    size = p->size + (int64_t)((__int128)(p->top - p->size) * part / WHOLE);
    size -= size % GIB;
    return size > p->size ? size : p->size;
}

/* Is there room for these sets, from 'first' on 'count' of them, at that part?
 */
static bool has_room (const struct layout *lay, const int64_t *room,
                      size_t first, size_t count, int64_t part)
{
    for (size_t r = 0; r < lay->nrabbits; r++) {
        int64_t left = room[r];

        for (size_t i = first; i < first + count; i++) {
            const struct layout_place *p = &lay->places[i];

            if (!grows (p) || p->counts[r] == 0)
                continue;
            left -= layout_cost (lay, p, r, size_at (p, part), p->counts[r])
                - layout_cost (lay, p, r, p->size, p->counts[r]);
            if (left < 0)
                return false;
        }
    }
    return true;
}

/* Let them grow together as far as that goes.
 */
static void grow_some (struct layout *lay, int64_t *room, size_t first,
                       size_t count)
{
    int64_t low = 0;
    int64_t high = WHOLE + 1;

    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;

        if (has_room (lay, room, first, count, middle))
            low = middle;
        else
            high = middle;
    }
    for (size_t i = first; i < first + count; i++) {
        struct layout_place *p = &lay->places[i];
        int64_t size = size_at (p, low);

        for (size_t r = 0; r < lay->nrabbits && grows (p); r++)
            room[r] -= layout_cost (lay, p, r, size, p->counts[r])
                - layout_cost (lay, p, r, p->size, p->counts[r]);
        if (grows (p))
            p->size = size;
    }
}

static int64_t bytes_of (json_t *map, const char *rabbit)
{
    return json_integer_value (json_object_get (map, rabbit));
}

static int64_t room_of (const struct layout *lay, size_t r, json_t *promised,
                        json_t *most)
{
    const struct layout_rabbit *rabbit = &lay->rabbits[r];
    int64_t room = rabbit->room - bytes_of (promised, rabbit->name);
    int64_t own = most ? bytes_of (most, rabbit->name) : LAYOUT_UNLIMITED;

    for (size_t i = 0; most && i < lay->nplaces; i++) {
        const struct layout_place *p = &lay->places[i];

        own -= layout_cost (lay, p, r, p->size, p->counts[r]);
    }
    if (own < room)
        room = own;
    return room > 0 ? room : 0;
}

void grow_all (struct layout *lay, json_t *ranges, json_t *promised,
               json_t *most)
{
    int64_t *room;
    bool any = false;

    for (size_t i = 0; i < lay->nplaces; i++) {
        lay->places[i].top = top_of (lay, &lay->places[i], ranges);
        any |= grows (&lay->places[i]);
    }
    /* Without memory they stay as they are. */
    if (!any || !(room = calloc (lay->nrabbits + 1, sizeof (*room))))
        return;
    for (size_t r = 0; r < lay->nrabbits; r++)
        room[r] = room_of (lay, r, promised, most);
    grow_some (lay, room, 0, lay->nplaces);
    for (size_t i = 0; i < lay->nplaces; i++)
        grow_some (lay, room, i, 1);
    free (room);
}

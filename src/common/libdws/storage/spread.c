/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The sets of AllocateAcrossServers without 'count': how many allocations
 * there are, and where. See place_private.h for what scale means.
 */

#include <errno.h>
#include <stdlib.h>

#include "spread_private.h"

#define DEFAULT_SCALE 5

/* The rabbits that a flexible set may use, best first.
 */
struct choice {
    size_t *list;
    size_t count;
    int64_t nodes;
    bool within_reserved;
};

static bool better_flexible (const struct layout *lay, size_t a, size_t b)
{
    const struct layout_rabbit *ra = &lay->rabbits[a];
    const struct layout_rabbit *rb = &lay->rabbits[b];

    if (ra->nodes != rb->nodes)
        return ra->nodes > rb->nodes;
    return ra->room > rb->room;
}

/* Fill 'c'. Some rabbits are left to sets that come later and must not share
 * one with this set.
 */
static void choose_rabbits (const struct layout *lay,
                            const struct layout_place *p,
                            struct choice *c)
{
    size_t keep = 0;

    c->count = 0;
    for (size_t r = 0; r < lay->nrabbits; r++) {
        size_t i = c->count;

        if (!layout_usable (lay, p, r))
            continue;
        for (; i > 0 && better_flexible (lay, r, c->list[i - 1]); i--)
            c->list[i] = c->list[i - 1];
        c->list[i] = r;
        c->count++;
    }
    for (size_t i = 0; i < lay->nplaces; i++) {
        const struct layout_place *other = &lay->places[i];

        if (other != p
            && !other->placed
            && layout_shared_key (p->set, other->set))
            keep++;
    }
    if (c->count > keep)
        c->count -= keep;
    else if (c->count > 1)
        c->count = 1;
    c->nodes = 0;
    for (size_t i = 0; i < c->count; i++)
        c->nodes += lay->rabbits[c->list[i]].nodes;
}

static bool count_fits (const struct layout *lay,
                        const struct layout_place *p,
                        const struct choice *c,
                        int64_t n)
{
    int64_t size = layout_size_of (lay, p, n);
    int64_t fit = 0;

    for (size_t i = 0; i < c->count && fit < n; i++) {
        int64_t k = layout_capacity_of (lay,
                                        p,
                                        c->list[i],
                                        size,
                                        c->within_reserved);

        fit += k < n ? k : n;
    }
    return fit >= n;
}

/* The number of allocations that 'scale' asks for, between 'fewest' and
 * 'most', given how many rabbits there are.
 */
static int64_t scaled_count (int scale,
                             int64_t fewest,
                             int64_t rabbits,
                             int64_t most)
{
    int64_t middle = rabbits;

    if (middle > most)
        middle = most;
    if (middle < fewest)
        middle = fewest;
    if (scale <= 5)
        return fewest + ((middle - fewest) * (scale - 1) + 2) / 4;
    return middle + ((most - middle) * (scale - 5) + 2) / 5;
}

/* The best number of allocations, or 0 if none will do.
 */
static int64_t choose_count (const struct layout *lay,
                             const struct layout_place *p,
                             const struct choice *c)
{
    int scale = p->set->scale ? p->set->scale : DEFAULT_SCALE;
    int64_t most = layout_is_exclusive (p->set) ? (int64_t)c->count : c->nodes;
    int64_t fewest = 1;
    int64_t target;

    // allocations smaller than the minimum make no sense
    if (lay->min_bytes > 0 && p->set->minimum / lay->min_bytes < most)
        most = p->set->minimum / lay->min_bytes;
    if (most < 1)
        most = 1;
    while (fewest <= most && !count_fits (lay, p, c, fewest))
        fewest++;
    if (fewest > most)
        return 0;
    target = scaled_count (scale, fewest, c->count, most);
    for (int64_t d = 0; d <= most; d++) {
        if (target + d <= most && count_fits (lay, p, c, target + d))
            return target + d;
        if (target - d >= fewest && count_fits (lay, p, c, target - d))
            return target - d;
    }
    return 0;
}

/* Hand out 'n' allocations: first one to each rabbit, then always to the one
 * that has the fewest for its nodes.
 */
static void hand_out (const struct layout *lay,
                      struct layout_place *p,
                      const struct choice *c,
                      int64_t n)
{
    int64_t size = layout_size_of (lay, p, n);

    while (n-- > 0) {
        size_t best = lay->nrabbits;

        for (size_t i = 0; i < c->count; i++) {
            size_t r = c->list[i];
            int64_t have = p->counts[r];

            if (have >= layout_capacity_of (lay,
                                            p,
                                            r,
                                            size,
                                            c->within_reserved))
                continue;
            if (have == 0) {
                best = r;
                break;
            }
            if (best == lay->nrabbits
                || lay->rabbits[r].nodes * (p->counts[best] + 1)
                   > lay->rabbits[best].nodes * (have + 1))
                best = r;
        }
        p->counts[best]++;
    }
}

int spread_place (struct layout *lay,
                  struct layout_place *p,
                  dws_error_t *error)
{
    struct choice c = { .within_reserved = true };
    int64_t n;

    if (!(c.list = calloc (lay->nrabbits + 1, sizeof (*c.list))))
        return dws_error_nomem (error);
    choose_rabbits (lay, p, &c);
    if ((n = choose_count (lay, p, &c)) == 0) {
        c.within_reserved = false;
        n = choose_count (lay, p, &c);
    }
    if (n > 0) {
        hand_out (lay, p, &c, n);
        layout_commit (lay, p, layout_size_of (lay, p, n));
    }
    else {
        n = c.nodes > 0 ? c.nodes : 1;
        layout_fail (lay, p, n, layout_size_of (lay, p, n), error);
        n = 0;
    }
    free (c.list);
    return n > 0 ? 0 : -1;
}

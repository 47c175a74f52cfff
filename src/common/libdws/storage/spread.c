/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The sets of AllocateAcrossServers without 'count': how many allocations
 * there are, and where. See place_private.h for what scale means.
 */

#include <errno.h>
#include <stdlib.h>

#include "spread_private.h"

#define DEFAULT_SCALE 5

/* The most allocations per rabbit that are tried: where a set may lie anywhere, the room
 * may be so uneven that only several allocations of one size on a rabbit use it all.
 */
#define TARGETS_EACH 4

/* The rabbits that a flexible set may use, best first.
 */
struct choice {
    size_t *list;
    size_t count;
    size_t near;          // those next to nodes of the job
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

/* Fill 'c'. Leave rabbits to later sets that must not share one with this set.
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
    c->near = 0;
    for (size_t i = 0; i < c->count; i++) {
        c->nodes += lay->rabbits[c->list[i]].nodes;
        c->near += lay->rabbits[c->list[i]].nodes > 0;
    }
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

/* Is there so much room at all? If not, the number of allocations need not be tried.
 */
static bool has_room (const struct layout *lay,
                      const struct layout_place *p,
                      const struct choice *c)
{
    int64_t left = p->set->minimum;

    for (size_t i = 0; i < c->count && left > 0; i++)
        left -= lay->rabbits[c->list[i]].room;
    return left <= 0;
}

/* Allocations smaller than the least size make no sense.
 */
static int64_t within_least (const struct layout *lay,
                             const struct layout_place *p,
                             int64_t n)
{
    int64_t most = alloc_set_most (p->set, lay->min_bytes);

    if (n > most)
        n = most;
    return n < 1 ? 1 : n;
}

/* The best number of allocations, or 0 if none will do.
 */
static int64_t choose_count (const struct layout *lay,
                             const struct layout_place *p,
                             const struct choice *c)
{
    int scale = p->set->scale ? p->set->scale : DEFAULT_SCALE;
    bool exclusive = layout_is_exclusive (p->set);
    int64_t count = c->count;
    int64_t most = exclusive && count == (int64_t)c->near ? count : c->nodes;
    int64_t limit;
    int64_t fewest = 1;
    int64_t target;

    if (!has_room (lay, p, c))
        return 0;
    most = within_least (lay, p, most);
    limit = most;
    if (count > (int64_t)c->near)
        limit = within_least (lay, p, exclusive ? count
                                                : most + TARGETS_EACH * count);
    while (fewest <= limit && !count_fits (lay, p, c, fewest))
        fewest++;
    if (fewest > limit)
        return 0;
    if (most < fewest)
        most = fewest;
    target = scaled_count (scale, fewest, c->near, most);
    for (int64_t d = 0; d <= limit; d++) {
        if (target + d <= limit && count_fits (lay, p, c, target + d))
            return target + d;
        if (target - d >= fewest && count_fits (lay, p, c, target - d))
            return target - d;
    }
    return 0;
}

static int64_t weight (const struct layout *lay, size_t r)
{
    return lay->rabbits[r].nodes > 0 ? lay->rabbits[r].nodes : 1;
}

/* A set that fits next to the job's nodes goes nowhere else: 'c' is then cut to the
 * rabbits of these nodes.
 */
static int64_t choose_count_near (const struct layout *lay,
                                  const struct layout_place *p,
                                  struct choice *c)
{
    struct choice near = *c;
    int64_t n;

    if (c->near == 0 || c->near == c->count)
        return 0;
    near.count = c->near;
    if ((n = choose_count (lay, p, &near)) > 0)
        *c = near;
    return n;
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
                || weight (lay, r) * (p->counts[best] + 1)
                   > weight (lay, best) * (have + 1))
                best = r;
        }
        p->counts[best]++;
    }
}

static void fail_anywhere (const struct layout *lay,
                           const struct layout_place *p,
                           const struct choice *c,
                           dws_error_t *error)
{
    int64_t room = 0;

    for (size_t i = 0; i < c->count; i++)
        room += lay->rabbits[c->list[i]].room / GIB;
    dws_error (error,
               ENOSPC,
               "%.64s, set %.16s: %lld GiB are needed, in allocations of one"
               " size; %zu of %zu rabbits can be used for it and have %lld GiB"
               " left",
               p->breakdown->name,
               p->set->label,
               (long long)bytes_to_gib (p->set->minimum),
               c->count,
               lay->nrabbits,
               (long long)room);
}

int spread_place (struct layout *lay,
                  struct layout_place *p,
                  dws_error_t *error)
{
    struct choice c = { .within_reserved = !lay->anywhere };
    int64_t n;

    if (!(c.list = calloc (lay->nrabbits + 1, sizeof (*c.list))))
        return dws_error_nomem (error);
    choose_rabbits (lay, p, &c);
    if ((n = choose_count_near (lay, p, &c)) == 0
        && (n = choose_count (lay, p, &c)) == 0) {
        c.within_reserved = false;
        n = choose_count (lay, p, &c);
    }
    if (n > 0) {
        hand_out (lay, p, &c, n);
        layout_commit (lay, p, layout_size_of (lay, p, n));
    }
    else if (lay->anywhere)
        fail_anywhere (lay, p, &c, error);
    else {
        n = c.nodes > 0 ? c.nodes : 1;
        layout_fail (lay, p, n, layout_size_of (lay, p, n), error);
        n = 0;
    }
    free (c.list);
    return n > 0 ? 0 : -1;
}

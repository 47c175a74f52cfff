/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See place_private.h. Sets are placed one after the other, those with the
 * least freedom first: a set that has been placed is not moved again.
 */

#include <errno.h>
#include <string.h>

#include "place_private.h"
#include "spread_private.h"

enum order {
    ORDER_BOUND,          // on every rabbit, so many: no choice at all
    ORDER_EXCLUSIVE,      // a fixed number, of which each needs a rabbit
    ORDER_FLEXIBLE,       // the number is ours to choose
    ORDER_FIXED,          // a fixed number, anywhere
};

static int64_t fixed_count (const struct alloc_set *set)
{
    if (set->strategy == ALLOC_SINGLE)
        return 1;
    return set->strategy == ALLOC_ACROSS ? set->count : 0;
}

static enum order order_of (const struct alloc_set *set)
{
    if (set->strategy == ALLOC_PER_COMPUTE
        || set->strategy == ALLOC_PER_SERVER)
        return ORDER_BOUND;
    if (fixed_count (set) == 0)
        return ORDER_FLEXIBLE;
    return layout_is_exclusive (set) ? ORDER_EXCLUSIVE : ORDER_FIXED;
}

/* On every rabbit, as many as the strategy says.
 */
static int place_bound (struct layout *lay,
                        struct layout_place *p,
                        dws_error_t *error)
{
    int64_t size = layout_size_of (lay, p, 1);
    char buf[160];

    for (size_t r = 0; r < lay->nrabbits; r++) {
        const struct layout_rabbit *rabbit = &lay->rabbits[r];
        const char *s = layout_obstacle (lay, p, r, buf, sizeof (buf));
        int64_t n = p->set->strategy == ALLOC_PER_COMPUTE ? rabbit->nodes
                                                          : 1;

        if (rabbit->nodes == 0)
            continue;
        if (s)
            return dws_error (error,
                              rabbit->fault ? EHOSTDOWN : ENOSPC,
                              "%.64s, set %.16s: needs storage on rabbit"
                              " %.60s, which %s",
                              p->breakdown->name,
                              p->set->label,
                              rabbit->name,
                              s);
        if (layout_cost (lay, p, r, size, n) > rabbit->room)
            return dws_error (error,
                              ENOSPC,
                              "%.64s, set %.16s: %lld x %lld GiB are needed"
                              " on rabbit %.60s, %lld GiB are left",
                              p->breakdown->name,
                              p->set->label,
                              (long long)n,
                              (long long)bytes_to_gib (size),
                              rabbit->name,
                              (long long)(rabbit->room / GIB));
        if (layout_is_exclusive (p->set) && n > 1)
            return dws_error (error,
                              ENOSPC,
                              "%.64s, set %.16s: is exclusive, but %lld"
                              " nodes of the job share rabbit %.60s",
                              p->breakdown->name,
                              p->set->label,
                              (long long)n,
                              rabbit->name);
        p->counts[r] = n;
    }
    layout_commit (lay, p, size);
    return 0;
}

/* Is 'a' the better rabbit for the next one of a fixed number?
 */
static bool better_fixed (const struct layout *lay,
                          const struct layout_place *p,
                          size_t a,
                          size_t b)
{
    const struct layout_rabbit *ra = &lay->rabbits[a];
    const struct layout_rabbit *rb = &lay->rabbits[b];
    int64_t room_a = ra->room - layout_cost (lay, p, a, p->size,
                                             p->counts[a]);
    int64_t room_b = rb->room - layout_cost (lay, p, b, p->size,
                                             p->counts[b]);

    if (p->counts[a] != p->counts[b])
        return p->counts[a] < p->counts[b];
    if ((ra->nodes > 0) != (rb->nodes > 0))
        return ra->nodes > 0;
    if (ra->known && rb->known && room_a != room_b)
        return room_a > room_b;
    return ra->nodes > rb->nodes;
}

static int place_fixed (struct layout *lay,
                        struct layout_place *p,
                        dws_error_t *error)
{
    int64_t n = fixed_count (p->set);

    p->size = layout_size_of (lay, p, n);
    for (int64_t i = 0; i < n; i++) {
        size_t best = lay->nrabbits;

        for (size_t r = 0; r < lay->nrabbits; r++) {
            if (layout_usable (lay, p, r)
                && layout_capacity_of (lay, p, r, p->size, false) > p->counts[r]
                && (best == lay->nrabbits || better_fixed (lay, p, r, best)))
                best = r;
        }
        if (best == lay->nrabbits) {
            memset (p->counts, 0, lay->nrabbits * sizeof (int64_t));
            return layout_fail (lay, p, n, p->size, error);
        }
        p->counts[best]++;
    }
    layout_commit (lay, p, p->size);
    return 0;
}

/* Bytes of each allocation of a set with a fixed number of them, else 0.
 */
static int64_t fixed_size (const struct layout *lay,
                           const struct layout_place *p)
{
    int64_t n = fixed_count (p->set);

    return n > 0 ? layout_size_of (lay, p, n) : 0;
}

/* The set to place next: the least free one, of those the one that can go to
 * the fewest rabbits, and of those the largest, which the smaller ones would
 * else keep from the only rabbits that have room for it.
 */
static struct layout_place *next_place (struct layout *lay)
{
    struct layout_place *best = NULL;
    enum order best_order = ORDER_BOUND;
    size_t best_usable = 0;
    int64_t best_size = 0;

    for (size_t i = 0; i < lay->nplaces; i++) {
        struct layout_place *p = &lay->places[i];
        enum order order = order_of (p->set);
        size_t n;
        int64_t size;

        if (p->placed)
            continue;
        n = layout_count_usable (lay, p);
        size = fixed_size (lay, p);
        if (!best
            || order < best_order
            || (order == best_order
                && (n < best_usable
                    || (n == best_usable && size > best_size)))) {
            best = p;
            best_order = order;
            best_usable = n;
            best_size = size;
        }
    }
    return best;
}

int place_all (struct layout *lay, dws_error_t *error)
{
    struct layout_place *p;

    while ((p = next_place (lay))) {
        int rc;

        switch (order_of (p->set)) {
            case ORDER_BOUND:
                rc = place_bound (lay, p, error);
                break;
            case ORDER_FLEXIBLE:
                rc = spread_place (lay, p, error);
                break;
            default:
                rc = place_fixed (lay, p, error);
                break;
        }
        if (rc < 0)
            return -1;
    }
    return 0;
}

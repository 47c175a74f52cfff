/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See layout.h. Sets are placed one after the other, those with the least
 * freedom first: a set that has been placed is not moved again.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout_internal.h"

enum order {
    ORDER_BOUND,          // on every rabbit, so many: no choice at all
    ORDER_EXCLUSIVE,      // a fixed number, of which each needs a rabbit
    ORDER_FLEXIBLE,       // the number is ours to choose
    ORDER_FIXED,          // a fixed number, anywhere
};

void layout_destroy (struct layout *lay)
{
    if (lay) {
        int saved_errno = errno;
        for (size_t i = 0; i < lay->nplaces; i++)
            free (lay->places[i].counts);
        free (lay->places);
        free (lay->rabbits);
        free (lay);
        errno = saved_errno;
    }
}

struct layout *layout_create (const struct breakdown_list *bl,
                              size_t nrabbits)
{
    struct layout *lay;
    size_t nplaces = 0;

    for (size_t i = 0; i < bl->count; i++)
        nplaces += bl->list[i].nsets;
    if (!(lay = calloc (1, sizeof (*lay)))
        || !(lay->rabbits = calloc (nrabbits + 1, sizeof (*lay->rabbits)))
        || !(lay->places = calloc (nplaces + 1, sizeof (*lay->places))))
        goto error;
    lay->nrabbits = nrabbits;
    for (size_t i = 0; i < bl->count; i++) {
        for (size_t j = 0; j < bl->list[i].nsets; j++) {
            struct layout_place *p = &lay->places[lay->nplaces++];

            p->breakdown = &bl->list[i];
            p->set = &bl->list[i].sets[j];
            if (!(p->counts = calloc (nrabbits + 1, sizeof (int64_t))))
                goto error;
        }
    }
    return lay;
error:
    layout_destroy (lay);
    return NULL;
}

static const char *key_of (json_t *colocation, size_t i)
{
    const char *key;

    key = json_string_value (json_object_get (json_array_get (colocation, i),
                                              "key"));
    return key ? key : "";
}

/* The key that both sets have, or NULL.
 */
const char *layout_shared_key (const struct alloc_set *a,
                               const struct alloc_set *b)
{
    for (size_t i = 0; i < json_array_size (a->colocation); i++) {
        for (size_t j = 0; j < json_array_size (b->colocation); j++) {
            if (strcmp (key_of (a->colocation, i),
                        key_of (b->colocation, j)) == 0)
                return key_of (a->colocation, i);
        }
    }
    return NULL;
}

bool layout_is_exclusive (const struct alloc_set *set)
{
    return json_array_size (set->colocation) > 0;
}

static const char *missing_label (const struct layout_rabbit *r,
                                  const struct alloc_set *set)
{
    size_t i;
    json_t *entry;

    if (!r->labels)
        return NULL;
    json_array_foreach (set->labels, i, entry) {
        const char *want = json_string_value (entry);
        size_t len = strcspn (want, "=");
        const char *name;
        json_t *value;
        bool found = false;

        json_object_foreach (r->labels, name, value) {
            const char *have = json_string_value (value);

            if (strlen (name) == len
                && strncmp (name, want, len) == 0
                && have
                && strcmp (have, want + len + (want[len] == '=')) == 0)
                found = true;
        }
        if (!found)
            return want;
    }
    return NULL;
}

/* The reason why the set cannot be on rabbit 'r', or NULL. The text is in
 * 'buf' or belongs to others.
 */
static const char *obstacle (const struct layout *lay,
                             const struct layout_place *p,
                             size_t r,
                             char *buf,
                             size_t size)
{
    const struct layout_rabbit *rabbit = &lay->rabbits[r];
    const char *s;

    if (rabbit->fault)
        return rabbit->fault;
    if ((s = missing_label (rabbit, p->set))) {
        snprintf (buf, size, "lacks label %.80s", s);
        return buf;
    }
    for (size_t i = 0; i < lay->nplaces; i++) {
        const struct layout_place *other = &lay->places[i];

        if (other != p
            && other->counts[r] > 0
            && (s = layout_shared_key (p->set, other->set))) {
            snprintf (buf,
                      size,
                      "has set %.20s, also exclusive '%.40s'",
                      other->set->label,
                      s);
            return buf;
        }
    }
    return NULL;
}

bool layout_usable (const struct layout *lay,
                    const struct layout_place *p,
                    size_t r)
{
    char buf[160];

    return obstacle (lay, p, r, buf, sizeof (buf)) == NULL;
}

static size_t count_usable (const struct layout *lay,
                            const struct layout_place *p)
{
    size_t n = 0;

    for (size_t r = 0; r < lay->nrabbits; r++)
        n += layout_usable (lay, p, r);
    return n;
}

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

/* Size of one of 'n' equal allocations of a set.
 */
int64_t layout_size_of (const struct layout *lay,
                        const struct layout_place *p,
                        int64_t n)
{
    int64_t size = div_up (p->set->minimum, n);

    return size > lay->min_bytes ? size : lay->min_bytes;
}

/* How many allocations rabbit 'r' can take, all in all, of this size.
 */
int64_t layout_capacity_of (const struct layout *lay,
                            const struct layout_place *p,
                            size_t r,
                            int64_t size,
                            bool within_reserved)
{
    const struct layout_rabbit *rabbit = &lay->rabbits[r];
    int64_t room = rabbit->room;

    if (within_reserved && rabbit->reserved < room)
        room = rabbit->reserved;
    if (room < size)
        return 0;
    return layout_is_exclusive (p->set) ? 1 : room / size;
}

/* Error: the set needs more than there is. Say of the first rabbit that is
 * ruled out why it is.
 */
int layout_fail (const struct layout *lay,
                 const struct layout_place *p,
                 int64_t n,
                 int64_t size,
                 dws_error_t *error)
{
    char buf[160];
    char because[200] = "";
    int64_t fit = 0;
    bool down = false;
    size_t n_usable = count_usable (lay, p);

    for (size_t r = 0; r < lay->nrabbits; r++) {
        const char *s = obstacle (lay, p, r, buf, sizeof (buf));

        if (s && !*because)
            snprintf (because,
                      sizeof (because),
                      "; %.60s %.100s",
                      lay->rabbits[r].name,
                      s);
        down |= lay->rabbits[r].fault != NULL;
        if (!s)
            fit += layout_capacity_of (lay, p, r, size, false);
    }
    return dws_error (error,
                      down ? EHOSTDOWN : ENOSPC,
                      "%.64s, set %.16s: %lld allocation%s of %lld GiB%s"
                      " on %zu of %zu rabbits: %lld fit%s",
                      p->breakdown->name,
                      p->set->label,
                      (long long)n,
                      n == 1 ? "" : "s",
                      (long long)bytes_to_gib (size),
                      layout_is_exclusive (p->set)
                          ? " (exclusive, one a rabbit)"
                          : "",
                      n_usable,
                      lay->nrabbits,
                      (long long)fit,
                      because);
}

void layout_commit (struct layout *lay, struct layout_place *p, int64_t size)
{
    p->size = size;
    p->placed = true;
    for (size_t r = 0; r < lay->nrabbits; r++) {
        lay->rabbits[r].room -= p->counts[r] * size;
        lay->rabbits[r].reserved -= p->counts[r] * size;
    }
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
        const char *s = obstacle (lay, p, r, buf, sizeof (buf));
        int64_t n = p->set->strategy == ALLOC_PER_COMPUTE ? rabbit->nodes
                                                          : 1;

        if (s)
            return dws_error (error,
                              rabbit->fault ? EHOSTDOWN : ENOSPC,
                              "%.64s, set %.16s: needs storage on rabbit"
                              " %.60s, which %s",
                              p->breakdown->name,
                              p->set->label,
                              rabbit->name,
                              s);
        if (rabbit->room / size < n)
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
    int64_t room_a = ra->room - p->counts[a] * p->size;
    int64_t room_b = rb->room - p->counts[b] * p->size;

    if (p->counts[a] != p->counts[b])
        return p->counts[a] < p->counts[b];
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

/* The set to place next: the least free one, and of those the one that can
 * go to the fewest rabbits.
 */
static struct layout_place *next_place (struct layout *lay)
{
    struct layout_place *best = NULL;
    enum order best_order = ORDER_BOUND;
    size_t best_usable = 0;

    for (size_t i = 0; i < lay->nplaces; i++) {
        struct layout_place *p = &lay->places[i];
        enum order order = order_of (p->set);
        size_t n;

        if (p->placed)
            continue;
        n = count_usable (lay, p);
        if (!best
            || order < best_order
            || (order == best_order && n < best_usable)) {
            best = p;
            best_order = order;
            best_usable = n;
        }
    }
    return best;
}

int layout_run (struct layout *lay, dws_error_t *error)
{
    struct layout_place *p;

    while ((p = next_place (lay))) {
        int rc;

        switch (order_of (p->set)) {
            case ORDER_BOUND:
                rc = place_bound (lay, p, error);
                break;
            case ORDER_FLEXIBLE:
                rc = layout_place_flexible (lay, p, error);
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

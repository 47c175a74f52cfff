/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See layout_private.h.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/errno_safe.h"
#include "colocation_private.h"
#include "drives.h"
#include "labels.h"
#include "layout_private.h"

void layout_destroy (struct layout *lay)
{
    if (lay) {
        ERRNO_SAFE_BLOCK;
        for (size_t i = 0; i < lay->nplaces; i++)
            free (lay->places[i].counts);
        for (size_t r = 0; lay->rabbits && r < lay->nrabbits; r++)
            json_decref (lay->rabbits[r].keys);
        free (lay->places);
        free (lay->rabbits);
        free (lay);
    }
}

struct layout *layout_create (const struct dws_breakdowns *bl,
                              bool bound,
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
            struct layout_place *p = &lay->places[lay->nplaces];

            if (bound && alloc_set_unbound (&bl->list[i].sets[j]))
                continue;
            lay->nplaces++;
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

const char *layout_shared_key (const struct alloc_set *a,
                               const struct alloc_set *b)
{
    const char *one;
    const char *other;

    for (size_t i = 0; (one = colocation_key (a, i)); i++) {
        for (size_t j = 0; (other = colocation_key (b, j)); j++) {
            if (strcmp (one, other) == 0)
                return one;
        }
    }
    return NULL;
}

bool layout_is_exclusive (const struct alloc_set *set)
{
    return colocation_key (set, 0) != NULL;
}

/* The text that says who else has a key of the set on a rabbit, or NULL.
 */
static const char *others_obstacle (const struct layout_place *p,
                                    const struct layout_rabbit *rabbit,
                                    char *buf,
                                    size_t size)
{
    const char *key;

    for (size_t i = 0; (key = colocation_key (p->set, i)); i++) {
        const char *holder = json_string_value (
            json_object_get (rabbit->keys, key));

        if (holder) {
            snprintf (buf,
                      size,
                      "has exclusive '%.40s' of %.96s",
                      key,
                      holder);
            return buf;
        }
    }
    return NULL;
}

const char *layout_obstacle (const struct layout *lay,
                             const struct layout_place *p,
                             size_t r,
                             char *buf,
                             size_t size)
{
    const struct layout_rabbit *rabbit = &lay->rabbits[r];
    const char *s;

    if (rabbit->fault)
        return rabbit->fault;
    if (rabbit->known
        && (s = dws_labels_missing (p->set->labels, rabbit->labels))) {
        snprintf (buf, size, "lacks label %.80s", s);
        return buf;
    }
    if ((s = others_obstacle (p, rabbit, buf, size)))
        return s;
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

    return layout_obstacle (lay, p, r, buf, sizeof (buf)) == NULL;
}

size_t layout_count_usable (const struct layout *lay,
                            const struct layout_place *p)
{
    size_t n = 0;

    for (size_t r = 0; r < lay->nrabbits; r++)
        n += layout_usable (lay, p, r);
    return n;
}

int64_t layout_size_of (const struct layout *lay,
                        const struct layout_place *p,
                        int64_t n)
{
    return alloc_set_size (p->set, n, lay->min_bytes);
}

int64_t layout_cost (const struct layout *lay,
                     const struct layout_place *p,
                     size_t r,
                     int64_t size,
                     int64_t count)
{
    return dws_drives_take (p->set->label, size, count, lay->rabbits[r].width);
}

int64_t layout_capacity_of (const struct layout *lay,
                            const struct layout_place *p,
                            size_t r,
                            int64_t size,
                            bool within_reserved)
{
    const struct layout_rabbit *rabbit = &lay->rabbits[r];
    int64_t room = rabbit->room;
    int64_t n;

    if (within_reserved && rabbit->reserved < room)
        room = rabbit->reserved;
    if (!dws_drives_shared (p->set->label))
        size = layout_cost (lay, p, r, size, 1);
    if (room < size)
        return 0;
    n = room / size;
    while (n > 0 && layout_cost (lay, p, r, size, n) > room)
        n--;
    return layout_is_exclusive (p->set) && n > 1 ? 1 : n;
}

/* The text says why the first rabbit that is ruled out cannot be used.
 */
int layout_fail (const struct layout *lay,
                 const struct layout_place *p,
                 int64_t n,
                 int64_t size,
                 dws_error_t *error)
{
    char buf[160];
    char because[240] = "";
    int64_t fit = 0;
    bool down = false;
    size_t n_usable = layout_count_usable (lay, p);

    for (size_t r = 0; r < lay->nrabbits; r++) {
        const char *s = layout_obstacle (lay, p, r, buf, sizeof (buf));

        if (s && !*because)
            snprintf (because,
                      sizeof (because),
                      "; %.60s %s",
                      lay->rabbits[r].name,
                      s);
        down |= lay->rabbits[r].fault && !lay->anywhere;
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
        int64_t cost = layout_cost (lay, p, r, size, p->counts[r]);

        lay->rabbits[r].room -= cost;
        lay->rabbits[r].reserved -= cost;
    }
}

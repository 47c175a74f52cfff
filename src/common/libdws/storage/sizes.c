/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See sizes.h. drives.h has the arithmetic of one allocation.
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libdws/directive/command.h"
#include "allocset_private.h"
#include "drives.h"
#include "shape_private.h"
#include "sizes.h"

static int64_t add (int64_t a, int64_t b)
{
    return __builtin_add_overflow (a, b, &a) ? INT64_MAX : a;
}

static int64_t multiply (int64_t a, int64_t b)
{
    return __builtin_mul_overflow (a, b, &a) ? INT64_MAX : a;
}

/* The set that the storage system is expected to make of directive 'i', in 'set'.
 * Returns false if that cannot be told.
 */
static bool foresee (struct alloc_set *set, const struct dws_directives *dirs,
                     size_t i)
{
    static const char *const types[] = { "xfs", "gfs2", "raw" };
    const char *type = dws_directives_arg (dirs, i, "type");
    const char *capacity = dws_directives_arg (dirs, i, "capacity");

    if (!(dws_command (dirs, i)
          & (DWS_COMMAND_JOBDW | DWS_COMMAND_CREATE_PERSISTENT))
        || !type || !capacity
        || dws_capacity_parse (capacity, &set->minimum) < 0
        || set->minimum == 0)
        return false;
    set->strategy = ALLOC_ACROSS;
    set->label = "ost";
    if (strcmp (type, "lustre") == 0)
        return true;
    set->strategy = ALLOC_PER_COMPUTE;
    for (size_t n = 0; n < sizeof (types) / sizeof (types[0]); n++) {
        set->label = types[n];
        if (strcmp (type, types[n]) == 0)
            return true;
    }
    return false;
}

/* Is the set of a file system of this type? Labels of Lustre targets mean lustre.
 */
static bool has_type (const struct alloc_set *set, const char *type)
{
    const char *is = dws_drives_shared (set->label) ? set->label : "lustre";

    return !type || strcmp (is, type) == 0;
}

static int64_t take (const struct alloc_set *set, int64_t count)
{
    int64_t shares = alloc_set_unbound (set) ? count : 1;
    int64_t size = alloc_set_size (set, shares, 0);

    return multiply (dws_drives_take (set->label, size, 1, DWS_DRIVES_OF_POOL),
                     count);
}

/* A layout may divide the set into any number of allocations, each rounded up: try all
 * numbers up to this one, and use an upper bound beyond it.
 */
#define COUNTS_TRIED 64

static int64_t take_across (const struct alloc_set *set, int64_t nodes)
{
    int64_t most = alloc_set_most (set, 0);
    int64_t max = take (set, 1);

    if (most > nodes)
        most = nodes;
    if (most > COUNTS_TRIED)
        return add (max, multiply (most, dws_drives_pool (1, 0)));
    for (int64_t n = 2; n <= most; n++) {
        int64_t bytes = take (set, n);

        if (bytes > max)
            max = bytes;
    }
    return max;
}

static int64_t taken_by (const struct alloc_set *set, const struct shape *shape)
{
    int64_t nodes = multiply (shape->groups, shape->per_group);

    switch (set->strategy) {
        case ALLOC_PER_COMPUTE:
            return take (set, nodes);
        case ALLOC_PER_SERVER:      // every group may be alone on its rabbit
            return take (set, shape->groups);
        case ALLOC_ACROSS:
            return set->count > 0 ? take (set, set->count)
                                  : take_across (set, nodes);
        default:
            return take (set, 1);
    }
}

static int64_t asked_by (const struct alloc_set *set, const struct shape *shape)
{
    if (set->strategy == ALLOC_PER_COMPUTE)
        return multiply (set->minimum,
                         multiply (shape->groups, shape->per_group));
    return set->minimum;
}

static void add_asked (struct dws_sizes *sizes, int64_t bytes, int64_t nodes)
{
    sizes->job.asked = add (sizes->job.asked, bytes);
    sizes->node.asked = add (sizes->node.asked, div_up (bytes, nodes));
}

static void add_taken (struct dws_sizes *sizes, int64_t bytes, int64_t nodes)
{
    sizes->job.taken = add (sizes->job.taken, bytes);
    sizes->node.taken = add (sizes->node.taken, div_up (bytes, nodes));
}

void dws_sizes_read (json_t *resources,
                     const struct dws_directives *directives,
                     const struct dws_breakdowns *breakdowns,
                     const char *type,
                     struct dws_sizes *sizes)
{
    bool known = breakdowns && breakdowns->count > 0;
    struct shape shape;
    int64_t nodes;

    *sizes = (struct dws_sizes){ 0 };
    if (shape_read (&shape, resources, NULL) < 0)
        shape.groups = shape.per_group = 1;
    nodes = multiply (shape.groups, shape.per_group);
    for (size_t i = 0; i < dws_directives_count (directives); i++) {
        struct alloc_set set = { 0 };

        if (!foresee (&set, directives, i) || !has_type (&set, type))
            continue;
        add_asked (sizes, asked_by (&set, &shape), nodes);
        if (!known)
            add_taken (sizes, taken_by (&set, &shape), nodes);
    }
    for (size_t i = 0; known && i < breakdowns->count; i++) {
        for (size_t j = 0; j < breakdowns->list[i].nsets; j++) {
            const struct alloc_set *set = &breakdowns->list[i].sets[j];

            if (has_type (set, type))
                add_taken (sizes, taken_by (set, &shape), nodes);
        }
    }
}

/* Texts
 */

static const char *make_text (const struct dws_size *size,
                              const char *what,
                              const char *without,
                              const char *with,
                              char buf[DWS_SIZE_TEXT_SIZE])
{
    char asked[DWS_CAPACITY_TEXT_SIZE];
    char more[DWS_CAPACITY_TEXT_SIZE];

    dws_capacity_text (size->asked, asked);
    if (size->taken <= size->asked)
        snprintf (buf, DWS_SIZE_TEXT_SIZE, "%s%s%s", asked, what, without);
    else
        snprintf (buf, DWS_SIZE_TEXT_SIZE, "%s%s, and %s of NNF's own%s", asked,
                  what,
                  dws_capacity_rough (size->taken - size->asked, more),
                  with);
    return buf;
}

const char *dws_size_text (const struct dws_size *size,
                           const char *what,
                           char buf[DWS_SIZE_TEXT_SIZE])
{
    return make_text (size, what, "", "", buf);
}

const char *dws_size_more (const struct dws_size *size,
                           const char *what,
                           char buf[DWS_SIZE_TEXT_SIZE])
{
    return make_text (size, what, " is more than", ": more than", buf);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See growth.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/directive/command.h"
#include "allocset_private.h"
#include "growth.h"

/* Part of what a directive may grow by, in so many.
 */
#define WHOLE (INT64_C (1) << 30)

static bool range_at (json_t *ranges, size_t index, struct dws_range *range)
{
    json_int_t least;
    json_int_t most;

    if (json_unpack (json_array_get (ranges, index), "[II]", &least,
                     &most) < 0)
        return false;
    range->least = least;
    range->most = most;
    return true;
}

/* The place of the directive: the number at the end. Returns -1 if there is none.
 */
static int place_of (const char *name)
{
    const char *s = strrchr (name, '-');
    char *end;
    long n;

    if (!s || s[1] < '0' || s[1] > '9')
        return -1;
    n = strtol (s + 1, &end, 10);
    return *end || n > INT32_MAX ? -1 : (int)n;
}

static bool is_metadata (const char *label)
{
    return !strcmp (label, "mgt") || !strcmp (label, "mdt")
        || !strcmp (label, "mgtmdt");
}

bool dws_growth_total (json_t *ranges, const char *name, const char *label,
                       int64_t minimum, int64_t *total)
{
    int place = ranges ? place_of (name) : -1;
    struct dws_range range;
    __int128 product;

    if (place < 0 || is_metadata (label)
        || !range_at (ranges, place, &range) || range.least < 1)
        return false;
    product = (__int128)minimum * range.most / range.least;
    *total = product < INT64_MAX / 4 ? (int64_t)product : INT64_MAX / 4;
    return true;
}

/* A directive asks for what 'growth' says, and for its first size otherwise.
 */
static json_t *replace_sizes (json_t *directives, json_t *ranges)
{
    json_t *array = json_array ();
    json_t *value;
    size_t i;

    json_array_foreach (directives, i, value) {
        const char *s = json_string_value (value);
        char type[16];
        struct dws_range range;
        json_t *o = NULL;

        if (s && range_at (ranges, i, &range)
            && dws_command_arg (s, "type", type, sizeof (type)))
            o = json_sprintf ("#DW jobdw type=%s capacity=%lldKiB", type,
                              (long long)(range.most / 1024));
        if (json_array_append_new (array, o ? o : json_incref (value)) < 0) {
            json_decref (array);
            return NULL;
        }
    }
    return array;
}

void dws_growth_asked (json_t *resources, json_t *directives, json_t *ranges,
                       struct dws_asked *asked)
{
    json_t *most = replace_sizes (directives, ranges);

    dws_breakdown_asked (resources, most ? most : directives, asked);
    json_decref (most);
}

/* The part of what lies between 'from' and 'to' that stays within 'most'.
 */
static int64_t part_within (int64_t from, int64_t to, int64_t most)
{
    if (to <= most || to <= from)
        return WHOLE;
    if (most <= from)
        return 0;
    return (int64_t)((__int128)(most - from) * WHOLE / (to - from));
}

static bool is_of (json_t *directive, const char *type)
{
    char buf[16];
    const char *s = json_string_value (directive);

    return !type
        || (s && dws_command_arg (s, "type", buf, sizeof (buf))
            && !strcmp (buf, type));
}

/* Lower the upper bounds of directives of a type (NULL: all) to this part.
 */
static int lower (json_t *ranges, json_t *directives, const char *type,
                  int64_t part)
{
    json_t *value;
    size_t i;

    json_array_foreach (directives, i, value) {
        struct dws_range range;

        if (part == WHOLE || !is_of (value, type)
            || !range_at (ranges, i, &range))
            continue;
        range.most = range.least
            + (int64_t)((__int128)(range.most - range.least) * part / WHOLE);
        if (json_array_set_new (ranges, i,
                                json_pack ("[II]", (json_int_t)range.least,
                                           (json_int_t)range.most)) < 0) {
            errno = ENOMEM;
            return -1;
        }
    }
    return 0;
}

/* Only those of the type, the others count as nothing.
 */
static json_t *only_of (json_t *directives, const char *type)
{
    json_t *array = json_array ();
    json_t *value;
    size_t i;

    json_array_foreach (directives, i, value) {
        if (json_array_append_new (array, is_of (value, type)
                                              ? json_incref (value)
                                              : json_string ("")) < 0) {
            json_decref (array);
            return NULL;
        }
    }
    return array;
}

/* [rabbit.policy.maximums] has GiB per node by type.
 */
static int keep_maximum (json_t *ranges, json_t *resources,
                         json_t *directives, const char *type, double gib)
{
    json_t *some = only_of (directives, type);
    struct dws_asked least;
    struct dws_asked most;
    int rc;

    if (!some) {
        errno = ENOMEM;
        return -1;
    }
    dws_breakdown_asked (resources, some, &least);
    dws_growth_asked (resources, some, ranges, &most);
    rc = lower (ranges, directives, type,
                part_within (least.node, most.node,
                             gib < INT32_MAX ? (int64_t)(gib * GIB)
                                             : INT64_MAX));
    json_decref (some);
    return rc;
}

json_t *dws_growth_within (json_t *ranges, json_t *resources,
                           json_t *directives, const struct dws_asked *most,
                           json_t *maximums)
{
    json_t *copy = json_deep_copy (ranges);
    struct dws_asked least;
    struct dws_asked all;
    const char *type;
    json_t *gib;
    int64_t job;
    int64_t node;

    if (!copy)
        goto error;
    json_object_foreach (maximums, type, gib) {
        if (json_is_number (gib)
            && keep_maximum (copy, resources, directives, type,
                             json_number_value (gib)) < 0)
            goto error;
    }
    dws_breakdown_asked (resources, directives, &least);
    dws_growth_asked (resources, directives, copy, &all);
    job = part_within (least.job, all.job, most->job);
    node = part_within (least.node, all.node, most->node);
    if (lower (copy, directives, NULL, job < node ? job : node) < 0)
        goto error;
    return copy;
error:
    json_decref (copy);
    errno = ENOMEM;
    return NULL;
}

/* What a user calls the size of it.
 */
static int64_t bytes_given (json_t *sizes)
{
    const char *label;
    json_t *value;
    int64_t bytes = 0;

    json_object_foreach (sizes, label, value) {
        json_int_t size = 0;
        json_int_t count = 0;

        (void)json_unpack (value, "{s:I s:I}", "size", &size, "count", &count);
        if (!is_metadata (label))
            bytes += strcmp (label, "ost") == 0 ? size * count : size;
    }
    return bytes;
}

static json_t *sizes_at (json_t *servers, size_t place)
{
    const char *name;
    json_t *sizes;

    json_object_foreach (servers, name, sizes) {
        if (place_of (name) == (int)place)
            return sizes;
    }
    return NULL;
}

json_t *dws_growth_given (json_t *ranges, json_t *directives, json_t *servers)
{
    json_t *given = json_object ();
    json_t *value;
    size_t i;

    json_array_foreach (directives, i, value) {
        const char *s = json_string_value (value);
        char name[128];
        char type[16];
        struct dws_range range;

        if (!s || !range_at (ranges, i, &range)
            || !dws_command_arg (s, "name", name, sizeof (name))
            || !dws_command_arg (s, "type", type, sizeof (type)))
            continue;
        if (json_object_set_new (given, name,
                                 json_pack ("{s:s s:I s:I s:I}",
                                            "type", type,
                                            "least", (json_int_t)range.least,
                                            "most", (json_int_t)range.most,
                                            "bytes", (json_int_t)bytes_given (
                                                sizes_at (servers, i)))) < 0) {
            json_decref (given);
            given = NULL;
            break;
        }
    }
    if (!given)
        errno = ENOMEM;
    return given;
}

json_t *dws_growth_sizes (json_t *servers)
{
    json_t *sets = json_object_get (json_object_get (servers, "spec"),
                                    "allocationSets");
    json_t *sizes = json_object ();
    json_t *set;
    json_t *entry;
    size_t i;
    size_t j;

    json_array_foreach (sets, i, set) {
        const char *label = "";
        json_int_t size = 0;
        json_int_t count = 0;

        (void)json_unpack (set, "{s:s s:I}", "label", &label,
                           "allocationSize", &size);
        json_array_foreach (json_object_get (set, "storage"), j, entry) {
            json_t *n = json_object_get (entry, "allocationCount");

            if (__builtin_add_overflow (count, json_integer_value (n), &count))
                count = 0;
        }
        if (json_object_set_new (sizes, label,
                                 json_pack ("{s:I s:I}", "size", size,
                                            "count", count)) < 0) {
            json_decref (sizes);
            sizes = NULL;
            break;
        }
    }
    if (!sizes)
        errno = ENOMEM;
    return sizes;
}

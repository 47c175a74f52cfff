/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See drives.h.
 */

#include <stdlib.h>
#include <string.h>

#include "drives.h"

#define BLOCK 4096
#define LEAST 14
/* minimumLustreAllocationSizeInBytes of nnf-sos: zpool create must not fail.
 */
#define LUSTRE_LEAST INT64_C (4000000000)

static int compare_sizes (const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* The sizes of those that are Ready, in 'sizes', of which there are no more
 * than drives->found.
 */
static void read_devices (json_t *devices, struct dws_drives *drives,
                          int64_t *sizes)
{
    json_t *device;
    size_t index;

    json_array_foreach (devices, index, device) {
        json_t *state = json_object_get (device, "status");
        json_t *wear = json_object_get (device, "wearLevel");
        json_int_t size = json_integer_value (json_object_get (device,
                                                               "capacity"));

        if (!json_is_string (state) || size <= 0
            || strcmp (json_string_value (state), "Ready") != 0)
            continue;
        sizes[drives->ready++] = size;
        if (json_is_integer (wear) && drives->wear < json_integer_value (wear))
            drives->wear = json_integer_value (wear);
        if (__builtin_add_overflow (drives->raw, size, &drives->raw))
            drives->raw = INT64_MAX;
    }
}

/* More drives than this have no rabbit.
 */
#define DRIVES_MAX 256

void dws_drives_read (json_t *status, struct dws_drives *drives)
{
    int64_t sizes[DRIVES_MAX];
    json_t *devices = json_object_get (status, "devices");
    size_t count = json_array_size (devices);

    *drives = (struct dws_drives){ .width = DWS_DRIVES_OF_POOL, .wear = -1 };
    if (count == 0 || count > DRIVES_MAX) {
        json_int_t capacity = 0;

        (void)json_unpack (status, "{s:I}", "capacity", &capacity);
        drives->raw = drives->usable = capacity > 0 ? capacity : 0;
        return;
    }
    drives->found = (int)count;
    read_devices (devices, drives, sizes);
    if (drives->width > drives->ready)
        drives->width = drives->ready >= LEAST ? drives->ready : 0;
    if (drives->width == 0)
        return;
    qsort (sizes, drives->ready, sizeof (sizes[0]), compare_sizes);
    if (__builtin_mul_overflow (sizes[drives->width - 1] / BLOCK * BLOCK,
                                (int64_t)drives->width, &drives->usable))
        drives->usable = INT64_MAX;
}

int64_t dws_drives_room (const struct dws_drives *drives, int64_t taken)
{
    int64_t room = drives->usable - (taken > 0 ? taken : 0);
    int64_t unit = (int64_t)drives->width * BLOCK;

    if (room <= 0 || unit == 0)
        return 0;
    return drives->found > 0 ? room / unit * unit : room;
}

int64_t dws_drives_pool (int64_t size, int width)
{
    int64_t unit = (int64_t)(width > 0 ? width : DWS_DRIVES_OF_POOL) * BLOCK;
    int64_t over;

    if (size <= 0)
        return 0;
    over = size % unit;
    if (over > 0 && __builtin_add_overflow (size, unit - over, &size))
        return INT64_MAX;
    return size;
}

bool dws_drives_shared (const char *label)
{
    return strcmp (label, "xfs") == 0 || strcmp (label, "gfs2") == 0
        || strcmp (label, "raw") == 0;
}

int64_t dws_drives_least (const char *label)
{
    return dws_drives_shared (label) ? 0 : LUSTRE_LEAST;
}

int64_t dws_drives_take (const char *label,
                         int64_t size,
                         int64_t count,
                         int width)
{
    bool shared = dws_drives_shared (label);
    int64_t least = dws_drives_least (label);

    if (size <= 0 || count <= 0)
        return 0;
    if (size < least)
        size = least;
    if (!shared)
        size = dws_drives_pool (size, width);
    if (size > INT64_MAX / count)
        return INT64_MAX;
    return shared ? dws_drives_pool (size * count, width) : size * count;
}

/* Servers
 */

/* Does an entry before this one name the same rabbit? Status has their sum.
 */
static bool is_repeated (json_t *storage, size_t index, const char *rabbit)
{
    for (size_t i = 0; i < index; i++) {
        const char *name = NULL;

        (void)json_unpack (json_array_get (storage, i), "{s:s}", "name", &name);
        if (name && strcmp (name, rabbit) == 0)
            return true;
    }
    return false;
}

/* 'made' has what was made of the set, by rabbit: NULL while that is not
 * complete.
 */
static void add_set (struct dws_bytes *map, json_t *set, json_t *made)
{
    const char *label = "";
    json_int_t size = 0;
    json_t *storage = NULL;
    json_t *entry;
    size_t index;

    (void)json_unpack (set, "{s?s s:I s:o}", "label", &label,
                       "allocationSize", &size,
                       "storage", &storage);
    json_array_foreach (storage, index, entry) {
        const char *rabbit = NULL;
        json_int_t count = 0;
        json_int_t bytes = 0;

        if (json_unpack (entry, "{s:s s:I}", "name", &rabbit,
                         "allocationCount", &count) < 0)
            continue;
        if (json_unpack (json_object_get (made, rabbit), "{s:I}",
                         "allocationSize", &bytes) < 0)
            bytes = dws_drives_take (label, size, count, DWS_DRIVES_OF_POOL);
        else if (is_repeated (storage, index, rabbit))
            continue;
        if (bytes > 0)
            dws_bytes_add (map, rabbit, bytes);
    }
}

static json_t *sets_of (json_t *servers, const char *half)
{
    return json_object_get (json_object_get (servers, half),
                            "allocationSets");
}

/* status.ready stays true once all allocations were made. Released allocations have a
 * size of 0 there, as have those that are not made yet.
 */
void dws_drives_taken (json_t *servers, struct dws_bytes *taken)
{
    json_t *made = NULL;
    json_t *set;
    size_t i;

    if (json_is_true (json_object_get (json_object_get (servers, "status"),
                                       "ready")))
        made = sets_of (servers, "status");
    json_array_foreach (sets_of (servers, "spec"), i, set)
        add_set (taken, set,
                 json_object_get (json_array_get (made, i), "storage"));
}

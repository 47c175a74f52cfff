/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See usable.h.
 */

#include "usable.h"

int64_t dws_health_capacity_of (const struct dws_drives *drives, int64_t mapped)
{
    if (drives->found == 0 && drives->raw == 0)
        return mapped;
    return drives->usable < mapped ? drives->usable : mapped;
}

int64_t dws_health_capacity (json_t *storage, int64_t mapped)
{
    struct dws_drives drives;

    dws_drives_read (json_object_get (storage, "status"), &drives);
    return dws_health_capacity_of (&drives, mapped);
}

int64_t dws_health_largest (json_t *storages, const struct dws_topology *topo)
{
    int64_t largest = 0;

    for (size_t i = 0; i < dws_topology_count (topo); i++) {
        json_t *storage = json_object_get (storages,
                                           dws_topology_name (topo, i));
        int64_t n = dws_health_capacity (storage,
                                         dws_topology_capacity (topo, i));

        if (n > largest)
            largest = n;
    }
    return largest;
}

int64_t dws_health_total (json_t *storages, const struct dws_topology *topo)
{
    int64_t total = 0;

    for (size_t i = 0; i < dws_topology_count (topo); i++) {
        json_t *storage = json_object_get (storages,
                                           dws_topology_name (topo, i));

        if (__builtin_add_overflow (total,
                                    dws_health_capacity (
                                        storage,
                                        dws_topology_capacity (topo, i)),
                                    &total))
            return INT64_MAX;
    }
    return total;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See storages.h.
 */

#include <errno.h>
#include <stdlib.h>

#include "libdws/health/usable.h"
#include "libdws/util/jsonmake.h"
#include "libutil/errno_safe.h"
#include "facts/storages.h"

struct storages {
    json_t *by_name;            // name -> object
    int64_t largest;            // dws_health_largest(), while 'counted'
    int64_t total;              // dws_health_total(), likewise
    bool counted;
};

struct storages *storages_create (void)
{
    struct storages *storages;

    if (!(storages = calloc (1, sizeof (*storages))))
        return NULL;
    if (!(storages->by_name = json_object ())) {
        storages_destroy (storages);
        errno = ENOMEM;
        return NULL;
    }
    return storages;
}

void storages_destroy (struct storages *storages)
{
    if (storages) {
        ERRNO_SAFE_BLOCK;
        json_decref (storages->by_name);
        free (storages);
    }
}

int storages_learn (struct storages *storages, json_t *object, bool deleted)
{
    const char *name = NULL;

    storages->counted = false;
    if (json_unpack (object, "{s:{s:s}}", "metadata", "name", &name) < 0)
        return 0;
    if (deleted)
        json_object_del (storages->by_name, name);
    else if (json_object_set (storages->by_name, name, object) < 0) {
        errno = ENOMEM;
        return -1;
    }
    return 0;
}

int storages_list (struct storages *storages, json_t *objects)
{
    json_t *object;
    size_t index;
    int rc = 0;

    storages->counted = false;
    json_object_clear (storages->by_name);
    json_array_foreach (objects, index, object) {
        if (storages_learn (storages, object, false) < 0)
            rc = -1;
    }
    return rc;
}

json_t *storages_by_name (const struct storages *storages)
{
    return storages->by_name;
}

json_t *storages_known (const struct storages *storages)
{
    return json_object_size (storages->by_name) > 0 ? storages->by_name : NULL;
}

json_t *storages_array (const struct storages *storages)
{
    const char *name;
    json_t *object;
    json_t *array;

    if (json_object_size (storages->by_name) == 0)
        return NULL;
    array = json_array ();
    json_object_foreach (storages->by_name, name, object)
        dws_json_append (&array, json_incref (object));
    return array;
}

static void count (struct storages *storages, const struct dws_topology *topo)
{
    if (!storages->counted) {
        storages->largest = dws_health_largest (storages->by_name, topo);
        storages->total = dws_health_total (storages->by_name, topo);
        storages->counted = true;
    }
}

int64_t storages_total (struct storages *storages,
                        const struct dws_topology *topo)
{
    count (storages, topo);
    return storages->total;
}

int64_t storages_largest (struct storages *storages,
                          const struct dws_topology *topo)
{
    count (storages, topo);
    return storages->largest;
}

void storages_remap (struct storages *storages)
{
    storages->counted = false;
}

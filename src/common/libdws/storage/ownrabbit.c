/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See ownrabbit.h.
 */

#include <errno.h>
#include <string.h>

#include "ownrabbit.h"

/* The first resource of one of these types (up to NULL), at any depth.
 */
static const char *find_type (json_t *resources, const char *const *types)
{
    json_t *value;
    size_t index;

    json_array_foreach (resources, index, value) {
        const char *type = json_string_value (json_object_get (value, "type"));

        for (size_t i = 0; type && types[i]; i++) {
            if (!strcmp (type, types[i]))
                return type;
        }
        if ((type = find_type (json_object_get (value, "with"), types)))
            return type;
    }
    return NULL;
}

int dws_ownrabbit_check (json_t *resources,
                         bool directives,
                         bool allowed,
                         dws_error_t *error)
{
    static const char *const storage[] = { "ssd", "rabbit", NULL };
    static const char *const all[] = { "ssd", "rabbit", "storage_node", NULL };
    const char *type;

    if (directives && (type = find_type (resources, storage)))
        return dws_error (error, EPERM, "resources: %s: a job with directives "
                          "gets the rabbit storage that these ask for, and no "
                          "other", type);
    if (!directives && !allowed && (type = find_type (resources, all)))
        return dws_error (error, EPERM, "resources: %s: rabbits and their "
                          "storage are for jobs with directives (-S dw=...); "
                          "others may not have them here "
                          "(rabbit.allow_rabbit_resources)", type);
    return 0;
}

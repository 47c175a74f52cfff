/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See daemons.h.
 */

#include <stdbool.h>
#include <string.h>

#include "libdws/util/jsonmake.h"
#include "allocset_private.h"
#include "daemons.h"

static bool contains (json_t *array, const char *s)
{
    size_t i;
    json_t *value;

    json_array_foreach (array, i, value) {
        if (strcmp (json_string_value (value), s) == 0)
            return true;
    }
    return false;
}

json_t *dws_daemons_units (const struct dws_breakdowns *breakdowns,
                           json_t *daemons,
                           dws_error_t *error)
{
    const struct dws_breakdowns *bl = breakdowns_or_none (breakdowns);
    json_t *units = json_array ();
    json_t *word;
    size_t j;

    for (size_t i = 0; i < bl->count; i++) {
        json_array_foreach (bl->list[i].requires, j, word) {
            const char *unit = json_string_value (
                json_object_get (daemons, json_string_value (word)));

            if (unit && !contains (units, unit))
                dws_json_append (&units, json_string (unit));
        }
    }
    if (!units)
        dws_error_nomem (error);
    return units;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See daemons.h.
 */

#include <stdbool.h>
#include <string.h>

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

static int add_unit (json_t *units,
                     json_t *word,
                     json_t *daemons,
                     dws_error_t *error)
{
    const char *unit = json_string_value (
        json_object_get (daemons, json_string_value (word)));

    if (!unit || contains (units, unit))
        return 0;
    if (json_array_append_new (units, json_string (unit)) < 0)
        return dws_error_nomem (error);
    return 0;
}

json_t *dws_daemons_units (const struct dws_breakdowns *breakdowns,
                           json_t *daemons,
                           dws_error_t *error)
{
    const struct dws_breakdowns *bl = breakdowns_or_none (breakdowns);
    json_t *units;
    json_t *word;
    size_t j;

    if (!(units = json_array ())) {
        dws_error_nomem (error);
        return NULL;
    }
    for (size_t i = 0; i < bl->count; i++) {
        json_array_foreach (bl->list[i].requires, j, word) {
            if (add_unit (units, word, daemons, error) < 0) {
                json_decref (units);
                return NULL;
            }
        }
    }
    return units;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See movements.h.
 */

#include <stdbool.h>
#include <string.h>

#include "copied.h"
#include "movements.h"

#define WHOLE 100

static bool has_ended (json_t *status)
{
    json_t *state = json_object_get (status, "state");

    return json_is_string (state)
        && !strcmp (json_string_value (state), "Finished");
}

/* Not above what is possible, whatever the object says.
 */
static int percent (json_t *status)
{
    json_t *command = json_object_get (status, "commandStatus");
    json_int_t n = json_integer_value (json_object_get (command, "progress"));

    return n < 0 ? 0 : n > WHOLE ? WHOLE : n;
}

int dws_movements_progress (json_t *movements, double *bytes)
{
    bool moving = false;
    int sum = 0;

    *bytes = 0.;
    json_t *object;
    size_t index;

    json_array_foreach (movements, index, object) {
        json_t *status = json_object_get (object, "status");
        struct dws_copied copied;

        dws_copied_read (status, &copied);
        *bytes += copied.bytes;
        if (has_ended (status))
            sum += WHOLE + 1;
        else {
            moving = true;
            /* That a movement was begun is progress, too. */
            sum += percent (status) + (json_object_size (status) > 0);
        }
    }
    return moving ? sum : -1;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See movements.h.
 */

#include <stdbool.h>
#include <string.h>

#include "libdws/util/jsonmake.h"
#include "copied.h"
#include "movements.h"

#define WHOLE 100

static bool is_text (json_t *o, const char *key, const char *text)
{
    const char *s = json_string_value (json_object_get (o, key));

    return s && !strcmp (s, text);
}

static bool has_ended (json_t *status)
{
    return is_text (status, "state", "Finished");
}

/* Bound the percentage of the object, which may be wrong.
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
            /* The begin of a movement is progress, too. */
            sum += percent (status) + (json_object_size (status) > 0);
        }
    }
    return moving ? sum : -1;
}

/* NNF finds those of a directive by this label, too.
 */
#define TEARDOWN_LABEL "nnf.cray.hpe.com/teardown_state"

static bool has_failed (json_t *object)
{
    json_t *meta = json_object_get (object, "metadata");
    json_t *status = json_object_get (object, "status");

    return is_text (json_object_get (meta, "labels"), TEARDOWN_LABEL, "DataOut")
        && has_ended (status) && !is_text (status, "status", "Success");
}

json_t *dws_movements_failed (json_t *movements)
{
    json_t *failed = json_array ();
    json_t *object;
    size_t index;

    json_array_foreach (movements, index, object) {
        const char *namespace;
        const char *name;

        if (has_failed (object)
            && json_unpack (object, "{s:{s:s s:s}}",
                            "metadata",
                              "namespace", &namespace,
                              "name", &name) == 0)
            dws_json_append (&failed, json_pack ("{s:s s:s}",
                                                 "namespace", namespace,
                                                 "name", name));
    }
    return failed;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Keys of flux-coral2 that have another name here, or that nothing is needed for.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config_old_private.h"

static const struct {
    const char *name;
    const char *now;    // NULL: none
    const char *why;    // with none: why not
} old_keys[] = {
    { "restrict_persistent", "restrict_persistent_creation", NULL },
    { "dws_api_version", NULL, "the API server tells its versions" },
    { "nnf_api_version", NULL, "the API server tells its versions" },
};

int dws_config_old_key (json_t *table,
                        const char *key,
                        const char **now,
                        char *note,
                        size_t size,
                        dws_error_t *error)
{
    for (size_t i = 0; i < sizeof (old_keys) / sizeof (old_keys[0]); i++) {
        json_t *other;

        if (strcmp (old_keys[i].name, key))
            continue;
        *now = old_keys[i].now;
        if (!*now) {
            snprintf (note, size, "rabbit.%s: has no effect, %s", key,
                      old_keys[i].why);
            return 1;
        }
        other = json_object_get (table, *now);
        if (other && !json_equal (other, json_object_get (table, key))) {
            return dws_error (error, EINVAL,
                              "rabbit.%s: is the old name of rabbit.%s, which "
                              "has another value", key, *now);
        }
        snprintf (note, size, "rabbit.%s: is now called rabbit.%s", key, *now);
        return 1;
    }
    return 0;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See jsonmake.h.
 */

#include <errno.h>

#include "jsonmake.h"

static void check (json_t **to, int rc)
{
    if (rc < 0) {
        json_decref (*to);
        *to = NULL;
        errno = ENOMEM;
    }
}

void dws_json_set (json_t **to, const char *key, json_t *value)
{
    check (to, json_object_set_new (*to, key, value));
}

void dws_json_append (json_t **to, json_t *value)
{
    check (to, json_array_append_new (*to, value));
}

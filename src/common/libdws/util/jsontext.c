/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See jsontext.h.
 */

#include <errno.h>
#include <stdlib.h>

#include "jsontext.h"

int dws_jsontext_set (char **text, const json_t *value)
{
    char *fresh = NULL;

    if (value
        && !(fresh = json_dumps (value, JSON_COMPACT | JSON_ENCODE_ANY))) {
        errno = ENOMEM;
        return -1;
    }
    free (*text);
    *text = fresh;
    return 0;
}

json_t *dws_jsontext_get (const char *text)
{
    json_error_t error;
    json_t *value = json_loads (text ? text : "",
                                JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);

    if (!value)
        errno = json_error_code (&error) == json_error_out_of_memory ? ENOMEM
                                                                     : EINVAL;
    return value;
}

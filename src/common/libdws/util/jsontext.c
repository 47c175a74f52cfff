/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See jsontext.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jsonparse.h"
#include "jsontext.h"

int dws_jsontext_set (char **text, const json_t *value)
{
    char *fresh = NULL;

    /* What jansson gives is larger than the text, for good. */
    if (value) {
        size_t size = json_dumpb (value, NULL, 0,
                                  JSON_COMPACT | JSON_ENCODE_ANY);

        if (size == 0 || !(fresh = malloc (size + 1))) {
            errno = ENOMEM;
            return -1;
        }
        json_dumpb (value, fresh, size, JSON_COMPACT | JSON_ENCODE_ANY);
        fresh[size] = '\0';
    }
    free (*text);
    *text = fresh;
    return 0;
}

json_t *dws_jsontext_get (const char *text)
{
    return dws_json_parse (text, text ? strlen (text) : 0);
}

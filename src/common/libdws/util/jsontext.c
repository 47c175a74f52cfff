/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See jsontext.h.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jsonparse.h"
#include "jsontext.h"
#include "jsonwrite.h"

int dws_jsontext_set (char **text, const json_t *value)
{
    char *fresh = NULL;

    if (value && !(fresh = dws_json_write (value)))
        return -1;
    free (*text);
    *text = fresh;
    return 0;
}

json_t *dws_jsontext_get (const char *text)
{
    return dws_json_parse (text, text ? strlen (text) : 0);
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * JSON as text, for data that is stored for long and read seldom: text takes a tenth
 * of the memory of the values.
 */

#ifndef LIBDWS_JSONTEXT_H
#define LIBDWS_JSONTEXT_H

#include <jansson.h>

/* Set '*text', whose former value is freed, to the text of 'value', or to
 * NULL if that is NULL. Fails with ENOMEM, and changes nothing then.
 */
int dws_jsontext_set (char **text, const json_t *value);

/* A new value, or NULL with errno: ENOMEM, or EINVAL if 'text' is NULL or no
 * JSON.
 */
json_t *dws_jsontext_get (const char *text);

#endif /* !LIBDWS_JSONTEXT_H */

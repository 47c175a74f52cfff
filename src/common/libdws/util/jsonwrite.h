/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * From values to text, as json_dumps() has it, for a quarter of what that takes: it
 * goes through strings character by character, and most have nothing to be escaped.
 */

#ifndef LIBDWS_JSONWRITE_H
#define LIBDWS_JSONWRITE_H

#include <jansson.h>

/* The text of a value of any kind, compact, to be freed; it takes no more memory than
 * it has to. Returns NULL with errno ENOMEM, or EINVAL if 'value' is NULL.
 */
char *dws_json_write (const json_t *value);

#endif /* !LIBDWS_JSONWRITE_H */

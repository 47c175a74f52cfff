/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * JSON that is put together from parts.
 */

#ifndef LIBDWS_JSONMAKE_H
#define LIBDWS_JSONMAKE_H

#include <jansson.h>

/* Set a key of an object, or append to an array. 'value' is taken over; NULL stands for
 * lack of memory. If that fails, '*to' is dropped and is NULL from then on, with errno
 * ENOMEM: only the result of many calls needs to be checked.
 */
void dws_json_set (json_t **to, const char *key, json_t *value);
void dws_json_append (json_t **to, json_t *value);

#endif /* !LIBDWS_JSONMAKE_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * From text to values, as json_loadb() has it, for a fifth of what that takes: half of
 * all that the module did for a job was done in there. What is common is read here:
 * brackets, whole numbers, and strings of plain ASCII. Any other scalar goes to
 * json_loadb(), which alone says what is valid.
 */

#ifndef LIBDWS_JSONPARSE_H
#define LIBDWS_JSONPARSE_H

#include <stddef.h>
#include <jansson.h>

/* A new value of any kind, or NULL with errno: ENOMEM, or EINVAL if 'text' is NULL or
 * no JSON. Nesting may be as deep as json_loadb() allows. Strings may have a NUL, as in
 * messages of Flux: what programs print comes this way.
 */
json_t *dws_json_parse (const char *text, size_t len);

#endif /* !LIBDWS_JSONPARSE_H */

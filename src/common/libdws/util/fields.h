/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Checks the fields of a message that another part of flux-dws sends: who reads it
 * afterwards finds each required field there, and each field of the right type. Fields
 * that the table does not name are ignored, as they may be those of a newer release.
 */

#ifndef LIBDWS_FIELDS_H
#define LIBDWS_FIELDS_H

#include <stdbool.h>
#include <jansson.h>

#include "error.h"

enum dws_field_type {
    DWS_FIELD_ID,               // of a job or a command: above 0
    DWS_FIELD_USERID,           // 32 bits without sign
    DWS_FIELD_COUNT,            // an int, 0 or more
    DWS_FIELD_INTEGER,
    DWS_FIELD_NUMBER,           // integer or real
    DWS_FIELD_BOOL,
    DWS_FIELD_STRING,
    DWS_FIELD_ARRAY,
    DWS_FIELD_STRINGS,          // an array of strings
    DWS_FIELD_OBJECT,
    DWS_FIELD_VARIABLES,        // an object whose values are strings
};

/* The last one of a table has no name.
 */
struct dws_field {
    const char *name;
    enum dws_field_type type;
    bool optional;              // may be left out
    bool nullable;              // may be null
};

#define DWS_REQUIRED(NAME, TYPE, ...) \
    { .name = NAME, .type = DWS_FIELD_##TYPE, ##__VA_ARGS__ }
#define DWS_OPTIONAL(NAME, TYPE, ...) \
    { .name = NAME, .type = DWS_FIELD_##TYPE, .optional = true, ##__VA_ARGS__ }

/* 'o' may be NULL: a message without payload. Returns 0, or -1 with errno EPROTO and a
 * text that begins with the name of the first field at fault.
 */
int dws_fields_check (json_t *o, const struct dws_field *fields,
                      dws_error_t *error);

#endif /* !LIBDWS_FIELDS_H */

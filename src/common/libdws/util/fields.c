/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See fields.h.
 */

#include <errno.h>
#include <limits.h>
#include <stdint.h>

#include "fields.h"

static const char *const type_names[] = {
    [DWS_FIELD_ID] = "an integer above 0",
    [DWS_FIELD_USERID] = "the number of a user",
    [DWS_FIELD_COUNT] = "an integer of 0 or more",
    [DWS_FIELD_INTEGER] = "an integer",
    [DWS_FIELD_NUMBER] = "a number",
    [DWS_FIELD_BOOL] = "true or false",
    [DWS_FIELD_STRING] = "a string",
    [DWS_FIELD_ARRAY] = "an array",
    [DWS_FIELD_STRINGS] = "an array of strings",
    [DWS_FIELD_OBJECT] = "an object",
    [DWS_FIELD_VARIABLES] = "an object of strings",
};

static bool is_within (json_t *value, json_int_t least, json_int_t most)
{
    json_int_t n = json_integer_value (value);

    return json_is_integer (value) && n >= least && n <= most;
}

static bool has_only_strings (json_t *value)
{
    json_t *entry;
    const char *key;
    size_t index;

    json_array_foreach (value, index, entry) {
        if (!json_is_string (entry))
            return false;
    }
    json_object_foreach (value, key, entry) {
        if (!json_is_string (entry))
            return false;
    }
    return true;
}

static bool has_type (json_t *value, enum dws_field_type type)
{
    switch (type) {
        case DWS_FIELD_ID:
            return is_within (value, 1, INT64_MAX);
        case DWS_FIELD_USERID:
            return is_within (value, 0, UINT32_MAX);
        case DWS_FIELD_COUNT:
            return is_within (value, 0, INT_MAX);
        case DWS_FIELD_INTEGER:
            return json_is_integer (value);
        case DWS_FIELD_NUMBER:
            return json_is_number (value);
        case DWS_FIELD_BOOL:
            return json_is_boolean (value);
        case DWS_FIELD_STRING:
            return json_is_string (value);
        case DWS_FIELD_ARRAY:
            return json_is_array (value);
        case DWS_FIELD_STRINGS:
            return json_is_array (value) && has_only_strings (value);
        case DWS_FIELD_OBJECT:
            return json_is_object (value);
        case DWS_FIELD_VARIABLES:
            return json_is_object (value) && has_only_strings (value);
    }
    return false;
}

int dws_fields_check (json_t *o, const struct dws_field *fields,
                      dws_error_t *error)
{
    if (o && !json_is_object (o))
        return dws_error (error, EPROTO, "expected an object");
    for (const struct dws_field *field = fields; field->name; field++) {
        json_t *value = json_object_get (o, field->name);

        if (!value && !field->optional)
            return dws_error (error, EPROTO, "%s: is required", field->name);
        if (value && !(json_is_null (value) && field->nullable)
            && !has_type (value, field->type))
            return dws_error (error, EPROTO, "%s: expected %s%s", field->name,
                              type_names[field->type],
                              field->nullable ? ", or null" : "");
    }
    return 0;
}

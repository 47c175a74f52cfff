/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See record.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/error.h"
#include "libdws/util/jsonmake.h"
#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"
#include "record.h"

/* Bytes of one movement in the record of many.
 */
#define MOVEMENT_MAX 8192

/* The most bytes of a text, and entries of an array or object, that the first attempt
 * keeps; each further attempt keeps a quarter. DEPTH_MAX bounds the depth.
 */
#define LENGTH_MAX 16384
#define DEPTH_MAX 12

static size_t size_of (json_t *o)
{
    return json_dumpb (o, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
}

static json_t *copy_bounded (json_t *o, size_t length, int depth, bool *cut);

static json_t *copy_text (json_t *o, size_t length, bool *cut)
{
    char *text;
    json_t *copied;

    if (json_string_length (o) <= length)
        return json_incref (o);
    *cut = true;
    if (!(text = strndup (json_string_value (o), length)))
        return NULL;
    dws_trim_utf8 (text, strlen (text));
    copied = json_string (text);
    free (text);
    return copied;
}

static json_t *copy_array (json_t *o, size_t length, int depth, bool *cut)
{
    json_t *copied = json_array ();
    json_t *entry;
    size_t index;

    json_array_foreach (o, index, entry) {
        if (index >= length) {
            *cut = true;
            break;
        }
        dws_json_append (&copied, copy_bounded (entry, length, depth, cut));
    }
    return copied;
}

static json_t *copy_object (json_t *o, size_t length, int depth, bool *cut)
{
    json_t *copied = json_object ();
    const char *key;
    json_t *value;

    json_object_foreach (o, key, value) {
        if (json_object_size (copied) >= length || strlen (key) > length) {
            *cut = true;
            continue;
        }
        dws_json_set (&copied, key, copy_bounded (value, length, depth, cut));
    }
    return copied;
}

static json_t *copy_bounded (json_t *o, size_t length, int depth, bool *cut)
{
    if (depth >= DEPTH_MAX && (json_is_object (o) || json_is_array (o))) {
        *cut = true;
        return json_null ();
    }
    if (json_is_string (o))
        return copy_text (o, length, cut);
    if (json_is_array (o))
        return copy_array (o, length, depth + 1, cut);
    if (json_is_object (o))
        return copy_object (o, length, depth + 1, cut);
    return json_incref (o);
}

static json_t *bounded (json_t *object, size_t max)
{
    for (size_t length = LENGTH_MAX; ; length /= 4) {
        bool cut = false;
        json_t *o = copy_bounded (object, length, 0, &cut);

        if (cut)
            dws_json_set (&o, "truncated", json_true ());
        if (!o || length == 0 || size_of (o) <= max)
            return o;
        json_decref (o);
    }
}

json_t *dws_record_object (json_t *object)
{
    if (!json_is_object (object)) {
        errno = EINVAL;
        return NULL;
    }
    return bounded (object, DWS_RECORD_MAX);
}

char *dws_record_text (const char *object)
{
    json_t *o;
    json_t *record = NULL;
    char *text = NULL;

    if (!object || *object != '{') {
        errno = EINVAL;
        return NULL;
    }
    if (strlen (object) <= LENGTH_MAX)  // nothing in it is too long
        return strdup (object);
    if (!(o = dws_jsontext_get (object)))
        return NULL;
    if ((record = dws_record_object (o)))
        (void)dws_jsontext_set (&text, record);
    ERRNO_SAFE (json_decref (record));
    ERRNO_SAFE (json_decref (o));
    return text;
}

static bool has_failed (json_t *movement)
{
    json_t *status = json_object_get (json_object_get (movement, "status"),
                                      "status");

    return json_is_string (status)
        && !strcmp (json_string_value (status), "Failed");
}

/* Record the movements that have failed, or those that have not, each bounded.
 * 'room' is the number of bytes that are left for all.
 */
static int record_movements (json_t *record, json_t *movements, bool failed,
                             int max, size_t *room)
{
    json_t *object;
    size_t index;

    json_array_foreach (movements, index, object) {
        json_t *o;
        size_t size;

        if (!json_is_object (object) || has_failed (object) != failed)
            continue;
        if (json_array_size (record) >= (size_t)max)
            break;
        if (!(o = bounded (object, MOVEMENT_MAX)))
            return -1;
        size = size_of (o) + 1;
        if (size > *room) {
            json_decref (o);
            break;
        }
        *room -= size;
        if (json_array_append_new (record, o) < 0)
            return -1;
    }
    return 0;
}

json_t *dws_record_movements (json_t *movements, int max)
{
    size_t room = DWS_RECORD_MAX - strlen ("[]");
    json_t *record;

    if (!(record = json_array ())
        || record_movements (record, movements, true, max, &room) < 0
        || record_movements (record, movements, false, max, &room) < 0) {
        json_decref (record);
        errno = ENOMEM;
        return NULL;
    }
    return record;
}

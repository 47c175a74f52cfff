/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See places.h.
 */

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/directive/command.h"
#include "places.h"

#define WORD_SIZE 256

struct place {
    const char *prefix;         // DW_JOB or DW_PERSISTENT
    const char *path;
    const char *name;           // of the file system
    const char *type;           // NULL: the directive does not say
};

static int set_text (json_t *env, const char *key, const char *value)
{
    if (json_object_set_new (env, key, json_string (value)) < 0) {
        errno = ENOMEM;
        return -1;
    }
    return 0;
}

/* NAME as part of a variable.
 */
static void make_key (const struct place *place, const char *name, bool upper,
                      char key[2 * WORD_SIZE])
{
    snprintf (key, 2 * WORD_SIZE, "%s_%s", place->prefix, name);
    for (char *cp = key + strlen (place->prefix); *cp; cp++) {
        if (*cp == '-')
            *cp = '_';
        else if (upper)
            *cp = toupper ((unsigned char)*cp);
    }
}

/* "NAME:PATH,NAME:PATH"
 */
static int append_to_list (json_t *env, const struct place *place)
{
    char key[WORD_SIZE];
    const char *old;
    char *text;
    int rc;

    snprintf (key, sizeof (key), "%sS", place->prefix);
    old = json_string_value (json_object_get (env, key));
    if (asprintf (&text, "%s%s%s:%s", old ? old : "", old ? "," : "",
                  place->name, place->path) < 0) {
        errno = ENOMEM;
        return -1;
    }
    rc = set_text (env, key, text);
    free (text);
    return rc;
}

static int add_place (json_t *env, const struct place *place)
{
    char key[2 * WORD_SIZE];

    make_key (place, place->name, false, key);
    if (json_object_get (env, key))
        return 0;
    if (set_text (env, key, place->path) < 0
        || append_to_list (env, place) < 0)
        return -1;
    if (!place->type)
        return 0;
    make_key (place, place->type, true, key);
    return json_object_get (env, key) ? 0 : set_text (env, key, place->path);
}

int dws_places_complete (json_t *env, const struct dws_directives *directives,
                         json_t *places)
{
    for (size_t i = 0; i < dws_directives_count (directives); i++) {
        unsigned int command = dws_command (directives, i);
        struct place place = { .prefix = "DW_JOB" };
        char number[32];

        snprintf (number, sizeof (number), "%zu", i);
        place.path = json_string_value (json_object_get (places, number));
        place.name = dws_directives_arg (directives, i, "name");
        if (!place.path || !place.name
            || !(command & (DWS_COMMAND_JOBDW | DWS_COMMAND_PERSISTENTDW)))
            continue;
        if (command == DWS_COMMAND_PERSISTENTDW)
            place.prefix = "DW_PERSISTENT";
        else
            place.type = dws_directives_arg (directives, i, "type");
        if (add_place (env, &place) < 0)
            return -1;
    }
    return 0;
}

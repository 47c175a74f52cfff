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
    char name[WORD_SIZE];       // of the file system
    char type[WORD_SIZE];       // "": the directive does not say
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
    if (!*place->type)
        return 0;
    make_key (place, place->type, true, key);
    return json_object_get (env, key) ? 0 : set_text (env, key, place->path);
}

int dws_places_complete (json_t *env, json_t *directives, json_t *places)
{
    json_t *value;
    size_t index;

    json_array_foreach (directives, index, value) {
        const char *directive = json_string_value (value);
        unsigned int command = directive ? dws_command (directive) : 0;
        struct place place = { .prefix = "DW_JOB" };
        char number[32];

        snprintf (number, sizeof (number), "%zu", index);
        place.path = json_string_value (json_object_get (places, number));
        if (!place.path
            || !(command & (DWS_COMMAND_JOBDW | DWS_COMMAND_PERSISTENTDW))
            || !dws_command_arg (directive, "name", place.name, WORD_SIZE))
            continue;
        if (command == DWS_COMMAND_PERSISTENTDW)
            place.prefix = "DW_PERSISTENT";
        else
            (void)dws_command_arg (directive, "type", place.type, WORD_SIZE);
        if (add_place (env, &place) < 0)
            return -1;
    }
    return 0;
}

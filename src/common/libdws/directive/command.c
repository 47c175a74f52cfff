/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See command.h.
 */

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/duration.h"
#include "command.h"

static const struct {
    const char *name;
    enum dws_command command;
} commands[] = {
    { "jobdw", DWS_COMMAND_JOBDW },
    { "persistentdw", DWS_COMMAND_PERSISTENTDW },
    { "create_persistent", DWS_COMMAND_CREATE_PERSISTENT },
    { "destroy_persistent", DWS_COMMAND_DESTROY_PERSISTENT },
    { "copy_in", DWS_COMMAND_COPY_IN },
    { "copy_out", DWS_COMMAND_COPY_OUT },
    { "container", DWS_COMMAND_CONTAINER },
};

#define BLANKS " \t\n"

/* The word behind the one at 's', "" at the end.
 */
static const char *word_after (const char *s)
{
    s += strcspn (s, BLANKS);
    return s + strspn (s, BLANKS);
}

/* Does the word at 's' consist of 'text'?
 */
static bool is_word (const char *s, const char *text)
{
    size_t len = strlen (text);

    return strcspn (s, BLANKS) == len && !strncmp (s, text, len);
}

unsigned int dws_command (const char *directive)
{
    const char *word = word_after (directive);

    for (size_t i = 0; i < sizeof (commands) / sizeof (commands[0]); i++) {
        if (is_word (directive, "#DW") && is_word (word, commands[i].name))
            return commands[i].command;
    }
    return 0;
}

unsigned int dws_commands (json_t *directives)
{
    unsigned int found = 0;
    json_t *value;
    size_t index;

    json_array_foreach (directives, index, value) {
        if (json_is_string (value))
            found |= dws_command (json_string_value (value));
    }
    return found;
}

/* FNV-1a, with the end of each text in it.
 */
uint64_t dws_commands_hash (json_t *directives)
{
    uint64_t h = 0xcbf29ce484222325ULL;
    json_t *value;
    size_t index;

    json_array_foreach (directives, index, value) {
        const char *s = json_is_string (value) ? json_string_value (value) : "";

        do
            h = (h ^ (unsigned char)*s) * 0x100000001b3ULL;
        while (*s++);
    }
    return h;
}

const char *dws_command_arg (const char *directive,
                             const char *key,
                             char *buf,
                             size_t size)
{
    size_t len = strlen (key);
    const char *word = word_after (word_after (directive));

    for (; *word; word = word_after (word)) {
        if (!strncmp (word, key, len) && word[len] == '=') {
            const char *value = word + len + 1;

            snprintf (buf, size, "%.*s", (int)strcspn (value, BLANKS), value);
            return buf;
        }
    }
    return NULL;
}

json_t *dws_commands_copied_out (json_t *directives)
{
    json_t *array = json_array ();
    json_t *value;
    size_t index;
    char source[PATH_MAX];
    char destination[PATH_MAX];

    json_array_foreach (directives, index, value) {
        const char *s = json_string_value (value);

        if (!s || dws_command (s) != DWS_COMMAND_COPY_OUT
            || !dws_command_arg (s, "source", source, sizeof (source))
            || !dws_command_arg (s, "destination", destination,
                                 sizeof (destination)))
            continue;
        if (json_array_append_new (array, json_sprintf ("%s -> %s", source,
                                                        destination)) < 0) {
            json_decref (array);
            array = NULL;
            break;
        }
    }
    if (!array)
        errno = ENOMEM;
    return array;
}

double dws_command_lifetime (const char *directive)
{
    char buf[64];
    double seconds;

    if (dws_command (directive) != DWS_COMMAND_CREATE_PERSISTENT
        || !dws_command_arg (directive, DWS_LIFETIME_KEY, buf, sizeof (buf))
        || dws_duration_parse (buf, &seconds) < 0
        || !(seconds > 0.))
        return -1.;
    return seconds;
}

/* A copy without the words that are for Flux, or NULL.
 */
static json_t *without_lifetime (const char *directive)
{
    size_t len = strlen (DWS_LIFETIME_KEY);
    char *text;
    char *to;
    json_t *o;

    if (!(text = to = malloc (strlen (directive) + 2)))
        return NULL;
    *to = '\0';
    for (const char *s = directive; *s; s = word_after (s)) {
        size_t n = strcspn (s, BLANKS);

        if (!strncmp (s, DWS_LIFETIME_KEY, len) && s[len] == '=')
            continue;
        to += sprintf (to, "%s%.*s", to > text ? " " : "", (int)n, s);
    }
    o = json_string (text);
    free (text);
    return o;
}

json_t *dws_commands_for_dws (json_t *directives, double *lifetime)
{
    json_t *array = json_array ();
    json_t *value;
    size_t index;

    *lifetime = -1.;
    json_array_foreach (directives, index, value) {
        const char *s = json_is_string (value) ? json_string_value (value) : "";
        double found = dws_command_lifetime (s);

        if (found > 0.)
            *lifetime = found;
        if (json_array_append_new (array, found > 0. ? without_lifetime (s)
                                                     : json_incref (value)) < 0) {
            json_decref (array);
            errno = ENOMEM;
            return NULL;
        }
    }
    if (!array)
        errno = ENOMEM;
    return array;
}

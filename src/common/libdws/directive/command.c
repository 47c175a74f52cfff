/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See command.h.
 */

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

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

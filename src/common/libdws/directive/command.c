/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See command.h.
 */

#include <stdlib.h>
#include <string.h>

#include "libdws/util/duration.h"
#include "libdws/util/jsonmake.h"
#include "command.h"
#include "list_private.h"

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

unsigned int dws_command (const struct dws_directives *dirs, size_t index)
{
    const char *name = dws_directives_command (dirs, index);

    for (size_t i = 0; name && i < sizeof (commands) / sizeof (commands[0]); i++) {
        if (!strcmp (name, commands[i].name))
            return commands[i].command;
    }
    return 0;
}

unsigned int dws_commands (const struct dws_directives *dirs)
{
    unsigned int found = 0;

    for (size_t i = 0; i < dws_directives_count (dirs); i++)
        found |= dws_command (dirs, i);
    return found;
}

/* FNV-1a, with the end of each text in it.
 */
uint64_t dws_commands_hash (const struct dws_directives *dirs)
{
    uint64_t h = 0xcbf29ce484222325ULL;

    for (size_t i = 0; i < dws_directives_count (dirs); i++) {
        const char *s = dws_directives_text (dirs, i);

        do
            h = (h ^ (unsigned char)*s) * 0x100000001b3ULL;
        while (*s++);
    }
    return h;
}

json_t *dws_commands_copied_out (const struct dws_directives *dirs)
{
    json_t *array = json_array ();

    for (size_t i = 0; i < dws_directives_count (dirs); i++) {
        const char *source = dws_directives_arg (dirs, i, "source");
        const char *destination = dws_directives_arg (dirs, i, "destination");

        if (dws_command (dirs, i) == DWS_COMMAND_COPY_OUT && source && destination)
            dws_json_append (&array, json_sprintf ("%s -> %s", source, destination));
    }
    return array;
}

const char *dws_command_persistent (const struct dws_directives *dirs, size_t index)
{
    unsigned int named = DWS_COMMAND_CREATE_PERSISTENT
        | DWS_COMMAND_DESTROY_PERSISTENT | DWS_COMMAND_PERSISTENTDW;

    if (!(dws_command (dirs, index) & named))
        return NULL;
    return dws_directives_arg (dirs, index, "name");
}

double dws_command_lifetime (const struct dws_directives *dirs, size_t index)
{
    const char *value = dws_directives_arg (dirs, index, DWS_LIFETIME_KEY);
    double seconds;

    if (dws_command (dirs, index) != DWS_COMMAND_CREATE_PERSISTENT || !value
        || dws_duration_parse (value, &seconds) < 0
        || !(seconds > 0.))
        return -1.;
    return seconds;
}

static int remove_lifetime (struct dws_directive *dir)
{
    size_t kept = 0;

    for (size_t i = 0; i < dir->nargs; i++) {
        struct dws_arg *arg = &dir->args[i];

        if (strcmp (arg->key, DWS_LIFETIME_KEY) != 0)
            dir->args[kept++] = *arg;
        else {
            free (arg->key);
            free (arg->value);
        }
    }
    dir->nargs = kept;
    return list_join_words (dir);
}

int dws_commands_take_lifetime (struct dws_directives *dirs, double *lifetime)
{
    *lifetime = -1.;
    for (size_t i = 0; i < dirs->count; i++) {
        double found = dws_command_lifetime (dirs, i);

        if (found < 0.)
            continue;
        *lifetime = found;
        if (remove_lifetime (&dirs->list[i]) < 0)
            return -1;
    }
    return 0;
}

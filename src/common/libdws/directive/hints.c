/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See hints_private.h. The words are those of people who know a shell, Slurm or
 * Cray's DataWarp, whose directives begin with #DW, too.
 */

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libdws/util/unseen.h"
#include "capacity.h"
#include "hints_private.h"

#define COUNT(array) (sizeof (array) / sizeof ((array)[0]))

/* Paths may have any character beyond ASCII.
 */
static bool is_quote (uint32_t c, bool path)
{
    return c == '"' || c == '\''
           || (!path && (c == 0xab || c == 0xbb || (c >= 0x2018 && c <= 0x201f)));
}

/* Copy the word without its quotation marks. Returns false if it has none.
 */
static bool without_quotes (const char *word, char *buf, size_t size)
{
    const char *end = word + strlen (word);
    bool path = strchr (word, '/') != NULL;
    bool found = false;
    size_t used = 0;
    size_t len;

    for (; word < end; word += len) {
        if (is_quote (dws_character (word, end, &len), path)) {
            found = true;
            continue;
        }
        if (used + len >= size)
            break;
        memcpy (buf + used, word, len);
        used += len;
    }
    buf[used] = '\0';
    return found;
}

static const char *datawarp_key (const char *key)
{
    static const struct {
        const char *key;
        const char *text;
    } keys[] = {
        { "access_mode", "leave it out; type=lustre and type=gfs2 are shared by"
          " the nodes, of type=xfs each node has its own" },
        { "access", "leave it out; type=lustre and type=gfs2 are shared by the"
          " nodes, of type=xfs each node has its own" },
        { "pfs", "copy from and to there by #DW copy_in and #DW copy_out" },
        { "optimization_strategy", "leave it out" },
    };

    for (size_t i = 0; i < COUNT (keys); i++) {
        if (strcmp (key, keys[i].key) == 0)
            return keys[i].text;
    }
    return NULL;
}

const char *hint_arg (const struct dws_directive *dir, size_t i, char *buf)
{
    const struct dws_arg *arg = &dir->args[i];
    const struct dws_arg *next = i + 1 < dir->nargs ? arg + 1 : NULL;
    const char *value = arg->value ? arg->value : "";
    const char *last = *value ? value : arg->key;
    const char *text;
    const char *unit;
    char key[64];
    char plain[64];

    bool quoted = without_quotes (arg->key, key, sizeof (key));

    quoted = without_quotes (value, plain, sizeof (plain)) || quoted;
    if (quoted)
        snprintf (buf, HINT_SIZE, "'%.60s%s%.60s' has quotation marks in it, which"
                  " no word of a directive has: write %.30s%s%.60s", arg->key,
                  arg->value ? "=" : "", value, key, arg->value ? "=" : "", plain);
    else if (*last && last[strlen (last) - 1] == ';')
        snprintf (buf, HINT_SIZE, "'%.60s%s%.60s' ends in ';': leave that out, a"
                  " new line or '#DW' begins the next directive", arg->key,
                  arg->value ? "=" : "", value);
    else if (strcmp (arg->key, "capacity") == 0 && *value
             && strspn (value, "0123456789.") == strlen (value)
             && next && !next->value && (unit = dws_capacity_unit (next->key)))
        snprintf (buf, HINT_SIZE, "there is a blank in 'capacity=%.32s %s': write"
                  " capacity=%.32s%s", value, next->key, value, unit);
    else if ((text = datawarp_key (arg->key)))
        snprintf (buf, HINT_SIZE, "key '%s' is of DataWarp and means nothing here:"
                  " %s",
                  arg->key, text);
    else if (!arg->value && strchr (arg->key, ':'))
        snprintf (buf, HINT_SIZE, "'%.60s' has ':' for '=': write %.*s=%.40s",
                  arg->key, (int)strcspn (key, ":"), key,
                  strchr (arg->key, ':') + 1);
    else
        return NULL;
    return buf;
}

const char *hint_command (const char *command, char *buf)
{
    static const struct {
        const char *command;
        const char *text;
    } known[] = {
        { "stage_in", "write #DW copy_in source=PATH destination=$DW_JOB_NAME" },
        { "stage_out", "write #DW copy_out source=$DW_JOB_NAME destination=PATH" },
        { "swap", "rabbits have no swap space, leave it out" },
    };

    for (size_t i = 0; i < COUNT (known); i++) {
        if (strcmp (command, known[i].command) == 0) {
            snprintf (buf, HINT_SIZE, " of DataWarp: %s", known[i].text);
            return buf;
        }
    }
    if (strchr (command, ',')) {
        snprintf (buf, HINT_SIZE, ": blanks separate words, write '#DW %.*s ...'",
                  (int)strcspn (command, ","), command);
        return buf;
    }
    if (strchr (command, '=')) {
        snprintf (buf, HINT_SIZE, ": a command comes first, write"
                  " '#DW jobdw %.60s ...'", command);
        return buf;
    }
    return NULL;
}

const char *hint_type (const char *value, char *buf)
{
    static const struct {
        const char *type;
        const char *text;
    } known[] = {
        { "scratch", "type=lustre or type=gfs2, which the nodes share, or type=xfs,"
          " of which each node has its own" },
        { "cache", "type=lustre, and #DW copy_in and #DW copy_out for the data" },
        { "swap", "type=xfs, of which each node has its own" },
    };

    for (size_t i = 0; i < COUNT (known); i++) {
        if (strcmp (value, known[i].type) == 0) {
            snprintf (buf, HINT_SIZE, "is of DataWarp: write %s", known[i].text);
            return buf;
        }
    }
    return NULL;
}

const char *hint_capacity (const char *key, const char *value, char *buf)
{
    char shown[DWS_CAPACITY_GUESS_SIZE];

    if (*value && value[strspn (value, "0123456789")] == '\0' && strlen (value) < 16)
        snprintf (buf, HINT_SIZE, "write %s=%sGiB, or with another unit", key, value);
    else if (dws_capacity_guess (value, shown))
        snprintf (buf, HINT_SIZE, "write %s=%s", key, shown);
    else
        return NULL;
    return buf;
}

const char *hint_name (const char *key, const char *value, char *buf)
{
    const char *end = value + strlen (value);
    char name[64];
    size_t used = 0;
    size_t len;

    for (const char *s = value; s < end; s += len) {
        uint32_t c = dws_character (s, end, &len);

        if (used + 1 >= sizeof (name))
            return NULL;
        if (c < 0x80 && isalnum ((int)c))
            name[used++] = tolower ((int)c);
        else if (c == '-' || c == '_' || c == '.' || (c >= 0x2010 && c <= 0x2015)
                 || c == 0x2212)
            name[used++] = '-';
        else
            return NULL;
    }
    name[used] = '\0';
    if (used < 2 || name[0] < 'a' || name[0] > 'z' || name[used - 1] == '-'
        || strcmp (name, value) == 0)
        return NULL;
    snprintf (buf, HINT_SIZE, "write %s=%s", key, name);
    return buf;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * How the directives of one job must fit together. Everything here is a
 * rule that the storage system applies too, but only after the job has been
 * queued, or, worse, when its storage is being set up.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "grammar_private.h"
#include "structure_private.h"

struct list {
    const struct dws_directive *dirs;
    size_t count;
    struct dws_directive_where *where;
    dws_error_t *error;
};

#define FAULT(l, index, fmt, ...)                                           \
    ((l)->where->line = (l)->dirs[index].line,                              \
     dws_error ((l)->error,                                                 \
                EINVAL,                                                     \
                "#DW directive %zu: " fmt,                                  \
                (index) + 1,                                                \
                ##__VA_ARGS__))

static bool is_command (const struct dws_directive *dir, const char *command)
{
    return strcmp (dir->command, command) == 0;
}

/* Index of the directive of this command whose name is 'name', of 'len'
 * characters, or -1. As part of an environment variable a name has '_' for
 * '-'.
 */
static int find_named (const struct list *l,
                       const char *command,
                       const char *name,
                       size_t len,
                       bool as_variable)
{
    for (size_t i = 0; i < l->count; i++) {
        const char *s;
        size_t j = 0;

        if (!is_command (&l->dirs[i], command)
            || !(s = list_arg (&l->dirs[i], "name"))
            || strlen (s) != len)
            continue;
        while (j < len
               && name[j] == (as_variable && s[j] == '-' ? '_' : s[j]))
            j++;
        if (j == len)
            return i;
    }
    return -1;
}

/* The variable of the second would replace that of the first. Of an xfs file system NNF
 * would never mount the second, as it is mounted once at a time.
 */
static int check_unique (const struct list *l, size_t i)
{
    static const char *commands[] = {
        "jobdw", "persistentdw", "create_persistent", "destroy_persistent",
    };
    const char *name = list_arg (&l->dirs[i], "name");

    for (size_t k = 0; k < sizeof (commands) / sizeof (commands[0]); k++) {
        int first;

        if (!is_command (&l->dirs[i], commands[k]) || !name)
            continue;
        first = find_named (l, commands[k], name, strlen (name), false);
        if (first >= 0 && (size_t)first < i) {
            l->where->other = l->dirs[first].line;
            return FAULT (l,
                          i,
                          "name '%.60s' is that of directive %d already",
                          name,
                          first + 1);
        }
    }
    return 0;
}

static int check_alone (const struct list *l, size_t i)
{
    if (l->count > 1
        && (is_command (&l->dirs[i], "create_persistent")
            || is_command (&l->dirs[i], "destroy_persistent"))) {
        l->where->other = l->dirs[i == 0].line;
        return FAULT (l,
                      i,
                      "%s must be the only directive of a job, there are"
                      " %zu",
                      l->dirs[i].command,
                      l->count);
    }
    return 0;
}

/* A path of copy_in or copy_out that is not absolute is under a storage that this job
 * declares.
 */
static int check_path (const struct list *l, size_t i, const char *key)
{
    static const struct {
        const char *prefix;
        const char *command;
    } kinds[] = {
        { "$DW_JOB_", "jobdw" },
        { "$DW_PERSISTENT_", "persistentdw" },
    };
    const char *path = list_arg (&l->dirs[i], key);

    if (!path || *path == '/')
        return 0;
    for (size_t k = 0; k < 2; k++) {
        size_t skip = strlen (kinds[k].prefix);
        const char *type;
        size_t len;
        int decl;

        if (strncmp (path, kinds[k].prefix, skip) != 0)
            continue;
        len = strcspn (path + skip, "/");
        decl = find_named (l, kinds[k].command, path + skip, len, true);
        if (decl < 0) {
            decl = find_named (l, kinds[k].command, path + skip, len, false);
            if (decl >= 0)
                return FAULT (l,
                              i,
                              "%s '%.60s': write the name with '_' for '-'",
                              key,
                              path);
            return FAULT (l,
                          i,
                          "%s '%.60s': no %s has the name '%.*s'",
                          key,
                          path,
                          kinds[k].command,
                          len > 60 ? 60 : (int)len,
                          path + skip);
        }
        type = list_arg (&l->dirs[decl], "type");
        if (type && strcmp (type, "raw") == 0)
            return FAULT (l,
                          i,
                          "%s '%.60s': data cannot be copied to or from raw"
                          " storage",
                          key,
                          path);
        return 0;
    }
    return 0;
}

/* NNF reports this fault in DataIn or DataOut only.
 */
static int check_ends (const struct list *l, size_t i)
{
    const char *source = list_arg (&l->dirs[i], "source");
    const char *destination = list_arg (&l->dirs[i], "destination");

    if (!source || !destination || *source == '$' || *destination == '$')
        return 0;
    return FAULT (l,
                  i,
                  "neither source '%.60s' nor destination '%.60s' is storage of "
                  "this job ($DW_JOB_<name> or $DW_PERSISTENT_<name>)",
                  source,
                  destination);
}

static int check_container_arg (const struct list *l,
                                size_t i,
                                const struct dws_arg *arg)
{
    const char *command;
    const char *type;
    int decl;

    if (strncmp (arg->key, "DW_JOB_", 7) == 0)
        command = "jobdw";
    else if (strncmp (arg->key, "DW_PERSISTENT_", 14) == 0)
        command = "persistentdw";
    else
        return 0;
    decl = find_named (l, command, arg->value, strlen (arg->value), false);
    if (decl < 0)
        return FAULT (l,
                      i,
                      "%.60s '%.60s': no %s has that name",
                      arg->key,
                      arg->value,
                      command);
    type = list_arg (&l->dirs[decl], "type");
    if (type && strcmp (type, "xfs") == 0)
        return FAULT (l,
                      i,
                      "%.60s '%.60s': containers cannot use xfs, only"
                      " lustre, gfs2 and raw",
                      arg->key,
                      arg->value);
    return 0;
}

static int check_container (const struct list *l, size_t i)
{
    const struct dws_directive *dir = &l->dirs[i];

    for (size_t j = 0; j < i; j++) {
        if (is_command (&l->dirs[j], "container"))
            return FAULT (l,
                          i,
                          "a job can have one container, directive %zu is"
                          " one already",
                          j + 1);
    }
    for (size_t j = i + 1; j < l->count; j++) {
        if (is_command (&l->dirs[j], "jobdw")
            || is_command (&l->dirs[j], "persistentdw"))
            return FAULT (l,
                          j,
                          "%s must come before the container (directive"
                          " %zu)",
                          l->dirs[j].command,
                          i + 1);
    }
    for (size_t j = 0; j < dir->nargs; j++) {
        if (check_container_arg (l, i, &dir->args[j]) < 0)
            return -1;
    }
    return 0;
}

int structure_check (const struct dws_directive *dirs,
                     size_t count,
                     struct dws_directive_where *where,
                     dws_error_t *error)
{
    struct list l = {
        .dirs = dirs,
        .count = count,
        .where = where,
        .error = error,
    };

    for (size_t i = 0; i < count; i++) {
        const struct dws_directive *dir = &dirs[i];

        if (check_alone (&l, i) < 0 || check_unique (&l, i) < 0)
            return -1;
        if (is_command (dir, "copy_in") || is_command (dir, "copy_out")) {
            if (check_path (&l, i, "source") < 0
                || check_path (&l, i, "destination") < 0
                || check_ends (&l, i) < 0)
                return -1;
        }
        if (is_command (dir, "container") && check_container (&l, i) < 0)
            return -1;
    }
    return 0;
}

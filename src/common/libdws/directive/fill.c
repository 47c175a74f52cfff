/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The name of a job's user and the job's id in the paths of a directive.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "grammar_private.h"
#include "path_private.h"

int directive_variables (const struct dws_directive *dir)
{
    int found = 0;

    for (size_t i = 0; i < dir->nargs; i++) {
        if (grammar_is_path (dir, &dir->args[i]))
            found |= path_variables (dir->args[i].value);
    }
    return found;
}

int directive_fill (struct dws_directive *dir, size_t index, const char *user,
                    const char *id, dws_error_t *error)
{
    bool changed = false;

    for (size_t i = 0; i < dir->nargs; i++) {
        struct dws_arg *arg = &dir->args[i];
        dws_error_t why;
        char *filled;

        if (!grammar_is_path (dir, arg) || !path_variables (arg->value))
            continue;
        if (!(filled = path_fill (arg->value, user, id, &why)))
            return dws_error (error, errno, "#DW directive %zu: %.60s '%.60s' %s",
                              index + 1, arg->key, arg->value, why.text);
        free (arg->value);
        arg->value = filled;
        changed = true;
    }
    if (changed && list_join_words (dir) < 0)
        return dws_error_nomem (error);
    return 0;
}

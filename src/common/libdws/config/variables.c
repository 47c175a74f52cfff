/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See variables.h.
 */

#include <fnmatch.h>
#include <string.h>

#include "variables.h"

static bool is_identifier (const char *name)
{
    static const char chars[] = "abcdefghijklmnopqrstuvwxyz"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return *name != '\0' && !(*name >= '0' && *name <= '9')
        && name[strspn (name, chars)] == '\0';
}

bool dws_variable_may_pass (json_t *patterns, const char *name)
{
    json_t *entry;
    size_t index;

    if (!strcmp (name, "DW_WORKFLOW_TOKEN") || !is_identifier (name))
        return false;
    json_array_foreach (patterns, index, entry) {
        const char *pattern = json_string_value (entry);
        if (pattern && fnmatch (pattern, name, 0) == 0)
            return true;
    }
    return false;
}

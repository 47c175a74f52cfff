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

static bool never_passes (const char *name)
{
    static const char *const patterns[] = {
        "LD_*", "DYLD_*", "GCONV_*", "GLIBC_*", "MALLOC_*", "*PATH",
        "*PRELOAD*", "BASH*", "SHELL*", "ENV", "IFS", "PS4",
        "PROMPT_COMMAND", "EDITOR", "PAGER", "HOME", "USER", "LOGNAME",
        "TMPDIR", "PYTHON*", "PERL*", "RUBY*", "NODE_OPTIONS", "JAVA_*",
        "FLUX_*", "KUBECONFIG",
    };

    if (!strcmp (name, "DW_WORKFLOW_TOKEN") || !is_identifier (name))
        return true;
    if (!strncmp (name, "DW_", 3) || !strncmp (name, "NNF_", 4))
        return false;
    for (size_t i = 0; i < sizeof (patterns) / sizeof (patterns[0]); i++) {
        if (fnmatch (patterns[i], name, 0) == 0)
            return true;
    }
    return false;
}

bool dws_variable_may_pass (json_t *patterns, const char *name)
{
    json_t *entry;
    size_t index;

    if (never_passes (name))
        return false;
    json_array_foreach (patterns, index, entry) {
        const char *pattern = json_string_value (entry);
        if (pattern && fnmatch (pattern, name, 0) == 0)
            return true;
    }
    return false;
}

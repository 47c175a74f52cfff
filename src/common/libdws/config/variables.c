/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See variables.h.
 */

#include <string.h>

#include "variables.h"

static bool is_identifier (const char *name)
{
    static const char chars[] = "abcdefghijklmnopqrstuvwxyz"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";

    return *name != '\0' && !(*name >= '0' && *name <= '9')
        && name[strspn (name, chars)] == '\0';
}

bool dws_variable_may_pass (const char *name)
{
    if (strncmp (name, "DW_", 3) != 0 && strncmp (name, "NNF_", 4) != 0)
        return false;
    return is_identifier (name) && strcmp (name, "DW_WORKFLOW_TOKEN") != 0;
}

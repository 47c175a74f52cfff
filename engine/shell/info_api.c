/* SPDX-License-Identifier: LGPL-3.0-only */
/* info_api.c - what plugins may ask about the job, each object as text or
 * unpacked, and how they change its options and environment.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/va.h"
#include "shell.h"

static int unpack (json_t *o, const char *fmt, va_list ap)
{
    if (!o || !fmt) {
        errno = EINVAL;
        return -1;
    }
    if (json_vunpack_ex (o, NULL, 0, fmt, ap) < 0) {
        errno = EPROTO;
        return -1;
    }
    return 0;
}

int flux_shell_info_unpack (flux_shell_t *shell, const char *fmt, ...)
{
    return VA (fmt, unpack (shell ? shell->info : NULL, fmt, ap));
}

/* Options and environment: parts of the jobspec, so changes show there.
 */

int flux_shell_getopt_unpack (flux_shell_t *shell, const char *name,
                              const char *fmt, ...)
{
    json_t *o;
    int rc;

    if (!shell || !name || !fmt) {
        errno = EINVAL;
        return -1;
    }
    if (!(o = json_object_get (shell->options, name)))
        return 0;
    rc = VA (fmt, unpack (o, fmt, ap));
    return rc < 0 ? -1 : 1;
}

static int set_or_delete (json_t *parent, const char *name, json_t *o)
{
    if (json_object_set_new (parent, name, o) < 0) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

int flux_shell_setenvf (flux_shell_t *shell, int overwrite, const char *name,
                        const char *fmt, ...)
{
    char *value;
    int rc;

    if (!shell || !name || !fmt) {
        errno = EINVAL;
        return -1;
    }
    if (!overwrite && json_object_get (shell->env, name))
        return 0;
    rc = VA (fmt, vasprintf (&value, fmt, ap));
    if (rc < 0)
        return -1;
    rc = set_or_delete (shell->env, name, json_string (value));
    free (value);
    return rc;
}

int flux_shell_unsetenv (flux_shell_t *shell, const char *name)
{
    if (!shell || !name) {
        errno = EINVAL;
        return -1;
    }
    if (json_object_del (shell->env, name) < 0) {
        errno = ENOENT;
        return -1;
    }
    return 0;
}

// vi: ts=4 sw=4 expandtab

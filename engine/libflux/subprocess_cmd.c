/* SPDX-License-Identifier: LGPL-3.0-only */
/* subprocess_cmd.c - flux_cmd_*: the arguments and environment of a process
 * to be.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/va.h"
#include "libutil/errno_safe.h"
#include "subprocess_private.h"

/* Vectors of strings, with a NULL at the end
 */

static int vec_insert (struct strvec *vec, int n, const char *s)
{
    char *copy;
    char **v;

    if (n < 0 || n > vec->count || !s) {
        errno = EINVAL;
        return -1;
    }
    if (!(v = realloc (vec->v, (vec->count + 2) * sizeof (v[0]))))
        return -1;
    vec->v = v;
    if (!(copy = strdup (s)))
        return -1;
    memmove (&v[n + 1], &v[n], (vec->count - n) * sizeof (v[0]));
    v[n] = copy;
    v[++vec->count] = NULL;
    return 0;
}

static void vec_delete (struct strvec *vec, int n)
{
    free (vec->v[n]);
    memmove (&vec->v[n], &vec->v[n + 1], (vec->count - n) * sizeof (char *));
    vec->count--;
}

static void vec_clear (struct strvec *vec)
{
    for (int i = 0; i < vec->count; i++)
        free (vec->v[i]);
    free (vec->v);
    *vec = (struct strvec){ 0 };
}

static int vec_copy (struct strvec *dst, char *const *src)
{
    struct strvec vec = { 0 };

    for (int i = 0; src && src[i]; i++) {
        if (vec_insert (&vec, vec.count, src[i]) < 0) {
            vec_clear (&vec);
            return -1;
        }
    }
    vec_clear (dst);
    *dst = vec;
    return 0;
}

/* Find NAME=VALUE
 */
static int vec_find (const struct strvec *vec, const char *name)
{
    size_t len = strlen (name);

    for (int i = 0; i < vec->count; i++) {
        if (strncmp (vec->v[i], name, len) == 0 && vec->v[i][len] == '=')
            return i;
    }
    return -1;
}

static int vec_setvar (struct strvec *vec, const char *name, const char *value)
{
    int i = vec_find (vec, name);
    char *s;
    int rc;

    if (asprintf (&s, "%s=%s", name, value) < 0)
        return -1;
    if (i >= 0) {
        free (vec->v[i]);
        vec->v[i] = s;
        return 0;
    }
    rc = vec_insert (vec, vec->count, s);
    free (s);
    return rc;
}

/* Commands
 */

void flux_cmd_destroy (flux_cmd_t *cmd)
{
    if (cmd) {
        ERRNO_SAFE_BLOCK;
        vec_clear (&cmd->argv);
        vec_clear (&cmd->env);
        free (cmd);
    }
}

flux_cmd_t *flux_cmd_create (int argc, char *argv[], char **env)
{
    flux_cmd_t *cmd;

    if (argc < 0 || (argc > 0 && !argv) || (argv && argv[argc])) {
        errno = EINVAL;
        return NULL;
    }
    if (!(cmd = calloc (1, sizeof (*cmd)))
        || vec_copy (&cmd->env, env) < 0)
        goto error;
    for (int i = 0; i < argc; i++) {
        if (vec_insert (&cmd->argv, i, argv[i]) < 0)
            goto error;
    }
    return cmd;
error:
    flux_cmd_destroy (cmd);
    return NULL;
}

flux_cmd_t *flux_cmd_copy (const flux_cmd_t *src)
{
    return flux_cmd_create (src->argv.count, src->argv.v, src->env.v);
}

int flux_cmd_argc (const flux_cmd_t *cmd)
{
    return cmd->argv.count;
}

const char *flux_cmd_arg (const flux_cmd_t *cmd, int n)
{
    if (n < 0 || n >= cmd->argv.count) {
        errno = EINVAL;
        return NULL;
    }
    return cmd->argv.v[n];
}

int flux_cmd_argv_append (flux_cmd_t *cmd, const char *arg)
{
    return vec_insert (&cmd->argv, cmd->argv.count, arg);
}

int flux_cmd_argv_appendf (flux_cmd_t *cmd, const char *fmt, ...)
{
    char *s;
    int rc;

    rc = VA (fmt, vasprintf (&s, fmt, ap));
    if (rc < 0)
        return -1;
    rc = flux_cmd_argv_append (cmd, s);
    free (s);
    return rc;
}

int flux_cmd_argv_delete (flux_cmd_t *cmd, int n)
{
    if (n < 0 || n >= cmd->argv.count) {
        errno = EINVAL;
        return -1;
    }
    vec_delete (&cmd->argv, n);
    return 0;
}

int flux_cmd_setenvf (flux_cmd_t *cmd, int overwrite, const char *name,
                      const char *fmt, ...)
{
    char *value;
    int rc;

    if (!overwrite && vec_find (&cmd->env, name) >= 0)
        return 0;
    rc = VA (fmt, vasprintf (&value, fmt, ap));
    if (rc < 0)
        return -1;
    rc = vec_setvar (&cmd->env, name, value);
    free (value);
    return rc;
}

void flux_cmd_unsetenv (flux_cmd_t *cmd, const char *name)
{
    int i = vec_find (&cmd->env, name);

    if (i >= 0)
        vec_delete (&cmd->env, i);
}

// vi: ts=4 sw=4 expandtab

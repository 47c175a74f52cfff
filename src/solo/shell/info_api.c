/* SPDX-License-Identifier: LGPL-3.0-only */
/* info_api.c - what plugins may ask about the job, each object as text or
 * unpacked, and how they change its options and environment.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "shell.h"

static int dump (json_t *o, char **json_str)
{
    if (!o || !json_str) {
        errno = EINVAL;
        return -1;
    }
    if (!(*json_str = json_dumps (o, JSON_COMPACT | JSON_ENCODE_ANY))) {
        errno = ENOMEM;
        return -1;
    }
    return 0;
}

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

int flux_shell_get_info (flux_shell_t *shell, char **json_str)
{
    return dump (shell ? shell->info : NULL, json_str);
}

int flux_shell_info_unpack (flux_shell_t *shell, const char *fmt, ...)
{
    va_list ap;
    int rc;

    va_start (ap, fmt);
    rc = unpack (shell ? shell->info : NULL, fmt, ap);
    va_end (ap);
    return rc;
}

int flux_shell_get_jobspec_info (flux_shell_t *shell, char **json_str)
{
    return dump (shell ? shell->jobspec_info : NULL, json_str);
}

int flux_shell_jobspec_info_unpack (flux_shell_t *shell, const char *fmt, ...)
{
    va_list ap;
    int rc;

    va_start (ap, fmt);
    rc = unpack (shell ? shell->jobspec_info : NULL, fmt, ap);
    va_end (ap);
    return rc;
}

static json_t *rank_info (flux_shell_t *shell, int rank)
{
    struct node *node;
    char ids[64] = "";

    if (!shell || rank < -1 || rank >= shell->size)
        return NULL;
    node = &shell->nodes[rank == -1 ? shell->rank : rank];
    if (node->info)
        return node->info;
    if (node->ntasks == 1)
        snprintf (ids, sizeof (ids), "%d", node->first_task);
    else if (node->ntasks > 1)
        snprintf (ids,
                  sizeof (ids),
                  "%d-%d",
                  node->first_task,
                  node->first_task + node->ntasks - 1);
    node->info = json_pack ("{s:i s:s s:i s:i s:s s:{s:i s:s s:s}}",
                            "id", (int)(node - shell->nodes),
                            "name", node->host,
                            "broker_rank", (int)node->broker_rank,
                            "ntasks", node->ntasks,
                            "taskids", ids,
                            "resources",
                              "ncores", node->ncores,
                              "cores", node->cores,
                              "gpus", node->gpus);
    return node->info;
}

int flux_shell_get_rank_info (flux_shell_t *shell, int rank, char **json_str)
{
    return dump (rank_info (shell, rank), json_str);
}

int flux_shell_rank_info_unpack (flux_shell_t *shell, int rank,
                                 const char *fmt, ...)
{
    va_list ap;
    int rc;

    va_start (ap, fmt);
    rc = unpack (rank_info (shell, rank), fmt, ap);
    va_end (ap);
    return rc;
}

const struct hostlist *flux_shell_get_hostlist (flux_shell_t *shell)
{
    if (!shell) {
        errno = EINVAL;
        return NULL;
    }
    return shell->hosts;
}

const struct taskmap *flux_shell_get_taskmap (flux_shell_t *shell)
{
    errno = ENOSYS;
    return NULL;
}

int flux_shell_get_hwloc_xml (flux_shell_t *shell, const char **xmlp)
{
    errno = ENOSYS;
    return -1;
}

/* Options and environment: parts of the jobspec, so changes show there.
 */

int flux_shell_getopt (flux_shell_t *shell, const char *name, char **json_str)
{
    json_t *o;

    if (!shell || !name) {
        errno = EINVAL;
        return -1;
    }
    if (!(o = json_object_get (shell->options, name)))
        return 0;
    return json_str && dump (o, json_str) < 0 ? -1 : 1;
}

int flux_shell_getopt_unpack (flux_shell_t *shell, const char *name,
                              const char *fmt, ...)
{
    va_list ap;
    json_t *o;
    int rc;

    if (!shell || !name || !fmt) {
        errno = EINVAL;
        return -1;
    }
    if (!(o = json_object_get (shell->options, name)))
        return 0;
    va_start (ap, fmt);
    rc = unpack (o, fmt, ap);
    va_end (ap);
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

int flux_shell_setopt (flux_shell_t *shell, const char *name,
                       const char *json_str)
{
    if (!shell || !name) {
        errno = EINVAL;
        return -1;
    }
    if (!json_str) {
        (void)json_object_del (shell->options, name);
        return 0;
    }
    return set_or_delete (shell->options,
                          name,
                          json_loads (json_str, JSON_DECODE_ANY, NULL));
}

int flux_shell_setopt_pack (flux_shell_t *shell, const char *name,
                            const char *fmt, ...)
{
    va_list ap;
    json_t *o;

    if (!shell || !name || !fmt) {
        errno = EINVAL;
        return -1;
    }
    va_start (ap, fmt);
    o = json_vpack_ex (NULL, 0, fmt, ap);
    va_end (ap);
    return set_or_delete (shell->options, name, o);
}

const char *flux_shell_getenv (flux_shell_t *shell, const char *name)
{
    if (!shell || !name) {
        errno = EINVAL;
        return NULL;
    }
    return json_string_value (json_object_get (shell->env, name));
}

int flux_shell_get_environ (flux_shell_t *shell, char **json_str)
{
    return dump (shell ? shell->env : NULL, json_str);
}

int flux_shell_setenvf (flux_shell_t *shell, int overwrite, const char *name,
                        const char *fmt, ...)
{
    va_list ap;
    char *value;
    int rc;

    if (!shell || !name || !fmt) {
        errno = EINVAL;
        return -1;
    }
    if (!overwrite && json_object_get (shell->env, name))
        return 0;
    va_start (ap, fmt);
    rc = vasprintf (&value, fmt, ap);
    va_end (ap);
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

/* SPDX-License-Identifier: LGPL-3.0-only */
/* util.c - start programs.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker.h"

extern char **environ;

const char *python_path (void)
{
    const char *s = getenv ("FLUX_PYTHON");

    return s ? s : SOLO_PYTHON;
}

/* Our environment with 'changes' applied.  Only the array is allocated.
 */
static char **environ_with (char *const changes[])
{
    size_t n = 0;
    size_t m = 0;
    char **env;

    while (environ[n])
        n++;
    while (changes && changes[m])
        m++;
    if (!(env = calloc (n + m + 1, sizeof (*env))))
        return NULL;
    n = 0;
    for (char **e = environ; *e; e++) {
        bool keep = true;
        for (size_t i = 0; i < m; i++) {
            size_t len = strcspn (changes[i], "=");
            if (!strncmp (*e, changes[i], len) && (*e)[len] == '=')
                keep = false;
        }
        if (keep)
            env[n++] = *e;
    }
    for (size_t i = 0; i < m; i++)
        if (strchr (changes[i], '='))
            env[n++] = changes[i];
    return env;
}

pid_t spawn_program (char *const argv[],
                     char *const changes[],
                     int out,
                     flux_error_t *error)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t none, all;
    char **env;
    pid_t pid;
    int e;

    if (!(env = environ_with (changes)))
        return errprintf (error, "out of memory");
    sigemptyset (&none);
    sigfillset (&all);
    posix_spawn_file_actions_init (&actions);
    posix_spawnattr_init (&attr);
    posix_spawnattr_setsigmask (&attr, &none);
    posix_spawnattr_setsigdefault (&attr, &all);
    posix_spawnattr_setflags (&attr,
                              POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (out >= 0)
        posix_spawn_file_actions_adddup2 (&actions, out, STDOUT_FILENO);
    e = posix_spawnp (&pid, argv[0], &actions, &attr, argv, env);
    posix_spawnattr_destroy (&attr);
    posix_spawn_file_actions_destroy (&actions);
    free (env);
    if (e != 0) {
        errno = e;
        return errprintf (error, "%s: %s", argv[0], strerror (e));
    }
    return pid;
}

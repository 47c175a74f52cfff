/* SPDX-License-Identifier: LGPL-3.0-only */
/* spawn.c - start programs, and find ours.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "errprintf.h"
#include "spawn.h"

extern char **environ;

const char *python_path (void)
{
    const char *s = getenv ("FLUX_PYTHON");

    return s && *s ? s : SOLO_PYTHON;
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
                     int in,
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
    if (in >= 0)
        posix_spawn_file_actions_adddup2 (&actions, in, STDIN_FILENO);
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

const char *solo_execdir (void)
{
    static char dir[PATH_MAX];

    if (dir[0] == '\0') {
        ssize_t n = readlink ("/proc/self/exe", dir, sizeof (dir) - 1);
        if (n < 0) {
            perror ("/proc/self/exe");
            abort ();
        }
        dir[n] = '\0';
        *strrchr (dir, '/') = '\0';
    }
    return dir;
}

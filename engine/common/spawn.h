/* SPDX-License-Identifier: LGPL-3.0-only */
/* spawn.h - start programs with the signals as they are for a new process.
 */
#ifndef SOLO_COMMON_SPAWN_H
#define SOLO_COMMON_SPAWN_H

#include <sys/types.h>

#include <flux/core.h>

/* Start a program with default signal handling.  'changes' is an array of
 * "NAME=VALUE" (or "NAME" to unset), or NULL, that modifies our own
 * environment.  'in' and 'out' become its standard input and output unless
 * they are -1.  Returns the pid.
 */
pid_t spawn_program (char *const argv[],
                     char *const changes[],
                     int in,
                     int out,
                     flux_error_t *error);

/* The Python that has flux-python.
 */
const char *python_path (void);
/* The directory of our own executable.
 */
const char *solo_execdir (void);

#endif

/* SPDX-License-Identifier: LGPL-3.0-only */
/* subprocess_private.h - what a command consists of. */
#ifndef SOLO_SUBPROCESS_PRIVATE_H
#define SOLO_SUBPROCESS_PRIVATE_H

#include <flux/core.h>

struct strvec {
    char **v;
    int count;
};

struct flux_command {
    struct strvec argv;
    struct strvec env;          // NAME=VALUE
    struct strvec opts;         // the same
    struct strvec channels;
    char *cwd;
    char *label;
};

#endif

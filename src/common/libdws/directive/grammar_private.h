/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: what may stand in a #DW directive, and the checks on one
 * directive by itself.
 */

#ifndef LIBDWS_GRAMMAR_PRIVATE_H
#define LIBDWS_GRAMMAR_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "libdws/util/error.h"
#include "list_private.h"

/* Called once for each thing that is passed on unknown. Returns -1 with
 * errno set on failure.
 */
typedef int (*grammar_warn_f) (void *arg, const char *text);

/* Check directive 'index' by itself: command, keys, values. 'line' becomes that of
 * the fault.
 */
int grammar_check_directive (const struct dws_directive *dir,
                             size_t index,
                             grammar_warn_f warn,
                             void *arg,
                             size_t *line,
                             dws_error_t *error);

/* Is the value of 'arg' a path (path_private.h)? 'dir' has been checked.
 */
bool grammar_is_path (const struct dws_directive *dir, const struct dws_arg *arg);

/* The variables in the directive's paths (enum dws_variable), or-ed.
 */
int directive_variables (const struct dws_directive *dir);

/* Replace the variables in the directive's paths with 'user' and 'id'; NULL leaves a
 * variable as it is. Fails with EINVAL if the result is no path, or with ENOMEM.
 */
int directive_fill (struct dws_directive *dir, size_t index, const char *user,
                    const char *id, dws_error_t *error);

#endif /* !LIBDWS_GRAMMAR_PRIVATE_H */

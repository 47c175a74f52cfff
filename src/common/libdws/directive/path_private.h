/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal: paths in directives. NNF hands them to a shell that root runs on the
 * rabbit, below the mount point of a file system, so they have only characters that
 * mean nothing to a shell, and no "..".
 */

#ifndef LIBDWS_PATH_PRIVATE_H
#define LIBDWS_PATH_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "libdws/util/error.h"
#include "directive.h"

/* The variables in the path (enum dws_variable), or-ed.
 */
int path_variables (const char *path);

/* Check a path that may begin with '/', and with storage of the job if 'storage'.
 * Fails with EINVAL and what is said of it behind its name.
 */
int path_check (const char *path, bool storage, dws_error_t *error);

/* A copy with the variables replaced by 'user' and 'id'; NULL leaves a variable as it
 * is. Fails with EINVAL if the result is no path, or with ENOMEM.
 */
char *path_fill (const char *path, const char *user, const char *id,
                 dws_error_t *error);

/* A word that only the storage system knows is of letters, digits and "._-", or, if it
 * is the 'value' of a key, of what paths are of. Returns the first character, as a text
 * in 'buf', that it cannot have, or "..", or NULL.
 */
const char *path_word_fault (const char *word, bool value, char *buf,
                             size_t size);

#endif /* !LIBDWS_PATH_PRIVATE_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal to config.c: keys of flux-coral2.
 */

#ifndef LIBDWS_CONFIG_OLD_PRIVATE_H
#define LIBDWS_CONFIG_OLD_PRIVATE_H

#include <jansson.h>

#include "libdws/util/error.h"

/* Whether a key of the table is one of flux-coral2 only. Returns 1 if so, with
 * what to tell the admin in note, and in *now the key that it stands for, or NULL
 * if it stands for none; 0 if not; -1 with EINVAL if the table says something else
 * by the new key.
 */
int dws_config_old_key (json_t *table,
                        const char *key,
                        const char **now,
                        char *note,
                        size_t size,
                        dws_error_t *error);

#endif /* !LIBDWS_CONFIG_OLD_PRIVATE_H */

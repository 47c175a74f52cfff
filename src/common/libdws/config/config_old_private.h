/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal to config.c: keys of flux-coral2, and keys that were removed.
 */

#ifndef LIBDWS_CONFIG_OLD_PRIVATE_H
#define LIBDWS_CONFIG_OLD_PRIVATE_H

#include <jansson.h>

#include "libdws/util/error.h"

enum dws_config_old {
    DWS_KEY_NOT_OLD,
    DWS_KEY_OLD,                // of flux-coral2: it does no harm
    DWS_KEY_GONE,               // what the site has decided by it is not done
};

/* Is the key one of flux-coral2, or one that was removed? Returns which, with advice for
 * the admin in note, and in *now the key that replaces it, or NULL if there is none; -1
 * with EINVAL if the table has another value for the new key.
 */
int dws_config_old_key (json_t *table,
                        const char *key,
                        const char **now,
                        char *note,
                        size_t size,
                        dws_error_t *error);

#endif /* !LIBDWS_CONFIG_OLD_PRIVATE_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal to config.c: checks of values beyond their type and bounds. 'name' is the
 * key, for the error.
 */

#ifndef LIBDWS_CONFIG_CHECKS_PRIVATE_H
#define LIBDWS_CONFIG_CHECKS_PRIVATE_H

#include <jansson.h>

#include "libdws/util/error.h"

typedef int (*check_f)(const char *name, json_t *value, dws_error_t *error);

/* Fail with EINVAL and "rabbit.NAME: expected WHAT, got VALUE".
 */
int dws_config_expected (const char *name,
                         const char *what,
                         json_t *value,
                         dws_error_t *error);

/* Fail with EINVAL and "rabbit.FULL: unknown key", and the one of 'known', which ends
 * with NULL, that 'key' may be a misspelling of.
 */
int dws_config_unknown_key (const char *full,
                            const char *key,
                            const char *const *known,
                            dws_error_t *error);

int dws_config_check_metrics (const char *name,
                              json_t *value,
                              dws_error_t *error);
int dws_config_check_policy (const char *name,
                             json_t *value,
                             dws_error_t *error);
int dws_config_check_command (const char *name,
                              json_t *value,
                              dws_error_t *error);
int dws_config_check_daemons (const char *name,
                              json_t *value,
                              dws_error_t *error);
int dws_config_check_presets (const char *name,
                              json_t *value,
                              dws_error_t *error);

/* In limits.c.
 */
int dws_config_check_limits (const char *name,
                             json_t *value,
                             dws_error_t *error);

#endif /* !LIBDWS_CONFIG_CHECKS_PRIVATE_H */

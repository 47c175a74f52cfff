/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal to config.c: checks of what the table names outside of itself.
 */

#ifndef LIBDWS_CONFIG_SITE_PRIVATE_H
#define LIBDWS_CONFIG_SITE_PRIVATE_H

#include "config.h"

/* Check files, programs, queues and contradictions, and set topology and
 * drain_properties. Faults are added to 'faults'. Without that array the first fault ends
 * the check; one with which an instance can start goes to 'notes' instead, if that array
 * is there. 'queues' is the table [queues], NULL if it is not known.
 */
int dws_config_check_site (struct dws_config *config,
                           json_t *table,
                           json_t *queues,
                           json_t *faults,
                           json_t *notes,
                           dws_error_t *error);

#endif /* !LIBDWS_CONFIG_SITE_PRIVATE_H */

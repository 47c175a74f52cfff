/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Internal to config.c: what the table names outside of itself.
 */

#ifndef LIBDWS_CONFIG_SITE_PRIVATE_H
#define LIBDWS_CONFIG_SITE_PRIVATE_H

#include "config.h"

/* Check files, programs, queues and contradictions, and fill in what comes of it:
 * topology and drain_properties. Every fault goes to 'faults'; without that array the
 * first one ends it, or, if an instance can start with it, goes to 'notes' where there
 * is that array. 'queues' is the table [queues], NULL if it is not known.
 */
int dws_config_check_site (struct dws_config *config,
                           json_t *table,
                           json_t *queues,
                           json_t *faults,
                           json_t *notes,
                           dws_error_t *error);

#endif /* !LIBDWS_CONFIG_SITE_PRIVATE_H */

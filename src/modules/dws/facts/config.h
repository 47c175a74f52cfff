/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The configuration as the module has it: the [rabbit] table (libdws), with
 * the rabbitmapping file that it names.
 */

#ifndef DWS_CONFIG_H
#define DWS_CONFIG_H

#include <flux/core.h>

#include "libdws/config/config.h"

/* Read and check the table and the file. A fault is reported with the key's
 * full name; for 'notes' see dws_config_load(). Fails with EINVAL, ENOMEM or
 * what reading the file gave.
 */
struct dws_config *config_create (const flux_conf_t *conf,
                                  json_t *notes,
                                  dws_error_t *error);

#endif /* !DWS_CONFIG_H */

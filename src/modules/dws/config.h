/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The [rabbit] table of the configuration. Each key is declared once, in
 * config.c, with its type, bounds and default.
 */

#ifndef DWS_CONFIG_H
#define DWS_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>
#include <flux/core.h>

#include "libdws/error.h"
#include "libdws/reconcile.h"
#include "libdws/topology.h"

struct config {
    struct dws_policy policy;
    char *mapping;                  // path of the rabbitmapping file
    struct dws_topology *topology;  // what is in it
    bool restrict_persistent;
    double progress_interval;       // s between annotations of a job
    json_t *maximums;               // policy.maximums or NULL
    json_t *daemons;                // word of "requires=" -> unit, or NULL
};

/* Read and check the table. A fault is reported with the key's full name.
 * Fails with EINVAL, ENOMEM or what reading the mapping file gave.
 */
struct config *config_create (const flux_conf_t *conf, dws_error_t *error);
void config_destroy (struct config *config);

#endif /* !DWS_CONFIG_H */

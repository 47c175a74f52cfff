/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The [rabbit] table of the configuration. Each key is declared once, in
 * config.c, with its type, unit, default, bounds and what it is for: parser,
 * errors, manual page and --check-config all come from there.
 */

#ifndef LIBDWS_CONFIG_H
#define LIBDWS_CONFIG_H

#include <stdbool.h>
#include <jansson.h>

#include "libdws/config/limits.h"
#include "libdws/decide/reconcile.h"
#include "libdws/graph/topology.h"
#include "libdws/util/error.h"

/* Where Lustre lies, and all that need not be next to the job's nodes.
 */
enum dws_placement {
    DWS_PLACEMENT_NEAR,
    DWS_PLACEMENT_ANYWHERE,
};

/* Which jobs with copy_in have their storage and data before they have nodes.
 */
enum dws_data_first {
    DWS_DATA_FIRST_NEVER,
    DWS_DATA_FIRST_ASKED,
    DWS_DATA_FIRST_ALWAYS,
};

struct dws_config {
    struct dws_policy policy;
    char *mapping;                  // path of the rabbitmapping file
    char *kubeconfig;               // or NULL
    char *metrics;                  // address to serve them on, or NULL
    bool rabbit_resources;          // for the jobtap plugin
    enum dws_placement lustre_placement;
    enum dws_data_first data_first;
    double space_timeout;           // of jobs that lie anywhere
    bool restrict_persistent;
    double persistent_lifetime;     // the longest, and the default; -1: for ever
    json_t *notice_command;         // what tells users, or NULL
    bool drain_compute_nodes;
    bool soft_drain;
    json_t *drain_queues;           // names, or NULL: any
    json_t *drain_properties;       // what nodes of each of them have, NULL
                                    //  until the caller has set it
    json_t *maximums;               // policy.maximums or NULL
    json_t *daemons;                // word of "requires=" -> unit, or NULL
    json_t *presets;                // or NULL
    json_t *limits_table;           // or NULL
    struct dws_limits *storage_limits;  // the same, compiled; NULL: none
    struct dws_topology *topology;  // NULL until the caller has read it; then
                                    //  it belongs to this struct
};

/* Read the table (NULL: an empty one). The error begins with the full name of
 * the key at fault. What is passed over, and keys of flux-coral2, are told in
 * 'notes', an array of texts; without one (NULL) unknown keys are faults.
 * Fails with EINVAL or ENOMEM.
 */
struct dws_config *dws_config_create (json_t *table,
                                      json_t *notes,
                                      dws_error_t *error);

/* The same from those keys alone that the jobtap plugin goes by; all others are
 * passed over, and need not be there.
 */
struct dws_config *dws_config_plugin (json_t *table, dws_error_t *error);
void dws_config_destroy (struct dws_config *config);

/* Every fault of the table and every note, as an array of texts.
 * Returns a new reference, or NULL with errno ENOMEM.
 */
json_t *dws_config_faults (json_t *table);

/* What the agent goes by, as an object of the keys that concern it, defaults
 * filled in. Returns a new reference, or NULL with errno ENOMEM.
 */
json_t *dws_config_agent (const struct dws_config *config);

/* The declarations, for documentation: an array of
 * {"name", "type", "default", "bounds", "help"} in their order; "default" is
 * a JSON value, null if there is none.
 * Returns a new reference, or NULL with errno ENOMEM.
 */
json_t *dws_config_describe (void);

#endif /* !LIBDWS_CONFIG_H */

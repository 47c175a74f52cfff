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

/* Where to place Lustre and all other storage that need not be next to the job's nodes.
 */
enum dws_placement {
    DWS_PLACEMENT_NEAR,
    DWS_PLACEMENT_ANYWHERE,
};

/* When a job with copy_in gets its storage and data before its nodes.
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
 * the key at fault. Ignored keys, and keys of flux-coral2, are reported in 'notes',
 * an array of texts; without it (NULL) unknown keys are faults.
 * Fails with EINVAL or ENOMEM.
 */
struct dws_config *dws_config_create (json_t *table,
                                      json_t *notes,
                                      dws_error_t *error);

/* The same, and check what the table names: files, programs, and queues, which are those
 * of the table [queues]. With 'notes', for an instance that starts, some of these may be
 * missing. Also fails with the errno of reading the mapping.
 */
struct dws_config *dws_config_load (json_t *table,
                                    json_t *queues,
                                    json_t *notes,
                                    dws_error_t *error);

/* Does [rabbit.limits] name users or groups? dws_config_unknown_names() asks the name
 * service for them, which may take long: it returns a new array with a text for each
 * name that does not exist. A rule with such a name fits nobody.
 */
bool dws_config_has_names (json_t *limits);
json_t *dws_config_unknown_names (json_t *limits);

/* The same, from the keys that the jobtap plugin reads; other keys are ignored, and
 * may be missing.
 */
struct dws_config *dws_config_plugin (json_t *table, dws_error_t *error);
void dws_config_destroy (struct dws_config *config);

/* {"faults", "notes"}: arrays of texts. Each fault is one for which dws_config_load()
 * without notes, or the check of the names, fails; notes are about keys that do no harm.
 * 'queues' is NULL if the queues are not known.
 * Returns a new reference, or NULL with errno ENOMEM.
 */
json_t *dws_config_faults (json_t *table, json_t *queues);

/* The agent's configuration: an object of the keys that it reads, defaults filled
 * in. Returns a new reference, or NULL with errno ENOMEM.
 */
json_t *dws_config_agent (const struct dws_config *config);

/* The declarations, for documentation: an array of
 * {"name", "type", "default", "bounds", "help"} in their order; "default" is
 * a JSON value, null if there is none.
 * Returns a new reference, or NULL with errno ENOMEM.
 */
json_t *dws_config_describe (void);

#endif /* !LIBDWS_CONFIG_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See config.h.
 */

#include <errno.h>

#include "config.h"

static int load_mapping (struct dws_config *config, dws_error_t *error)
{
    json_t *o;
    json_error_t err;
    dws_error_t detail;

    if (!(o = json_load_file (config->mapping, 0, &err)))
        return dws_error (error, EINVAL, "rabbit.mapping: %s: %s",
                          config->mapping, err.text);
    config->topology = dws_topology_create (o, &detail);
    json_decref (o);
    if (!config->topology)
        return dws_error (error, errno, "rabbit.mapping: %s: %s",
                          config->mapping, detail.text);
    return 0;
}

struct dws_config *config_create (const flux_conf_t *conf, dws_error_t *error)
{
    struct dws_config *config;
    json_t *table = NULL;
    flux_error_t err;

    if (flux_conf_unpack (conf, &err, "{s?o}", "rabbit", &table) < 0) {
        dws_error (error, errno, "%s", err.text);
        return NULL;
    }
    if (!(config = dws_config_create (table, error)))
        return NULL;
    if (load_mapping (config, error) < 0) {
        dws_config_destroy (config);
        return NULL;
    }
    return config;
}

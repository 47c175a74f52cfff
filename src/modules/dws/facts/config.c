/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See config.h.
 */

#include <errno.h>

#include "facts/config.h"

struct dws_config *config_create (const flux_conf_t *conf,
                                  json_t *notes,
                                  dws_error_t *error)
{
    struct dws_config *config;
    json_t *table = NULL;
    json_t *queues = NULL;
    json_t *none;
    flux_error_t err;

    if (flux_conf_unpack (conf, &err, "{s?o s?o}",
                          "rabbit", &table,
                          "queues", &queues) < 0) {
        dws_error (error, errno, "%s", err.text);
        return NULL;
    }
    if (!(none = json_object ())) {
        dws_error_nomem (error);
        return NULL;
    }
    config = dws_config_load (table, queues ? queues : none, notes, error);
    json_decref (none);
    return config;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See config.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "facts/config.h"

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

/* It runs as the instance owner: nobody else may say what it does.
 */
static int check_program (const char *path, dws_error_t *error)
{
    struct stat st;

    if (stat (path, &st) < 0)
        return dws_error (error, EINVAL, "rabbit.notice_command: %s: %s", path,
                          strerror (errno));
    if (!S_ISREG (st.st_mode) || access (path, X_OK) < 0)
        return dws_error (error, EINVAL, "rabbit.notice_command: %s is not a "
                          "program that can be run", path);
    if ((st.st_uid != 0 && st.st_uid != getuid ())
        || (st.st_mode & (S_IWGRP | S_IWOTH)))
        return dws_error (error, EINVAL, "rabbit.notice_command: %s can be written "
                          "to by others: chown root, chmod go-w", path);
    return 0;
}

/* An instance that starts does not do without storage because users cannot be told of
 * something; the program may be there when it is needed.
 */
static int check_notice_command (const struct dws_config *config, json_t *notes,
                                 dws_error_t *error)
{
    json_t *path = json_array_get (config->notice_command, 0);

    if (!path || check_program (json_string_value (path), error) == 0)
        return 0;
    if (!notes)
        return -1;
    if (json_array_append_new (notes, json_string (error->text)) < 0)
        return dws_error_nomem (error);
    return 0;
}

static bool is_text_array (json_t *array)
{
    size_t index;
    json_t *value;

    json_array_foreach (array, index, value) {
        if (!json_is_string (value))
            return false;
    }
    return json_is_array (array);
}

/* The queue whose nodes a queue has: its own, or those of its parent (RFC 33). NULL if
 * there is no such queue.
 */
static json_t *queue_with_nodes (json_t *queues, const char *name)
{
    json_t *queue = json_object_get (queues, name);
    json_t *parent = json_object_get (queue, "parent");

    return parent ? json_object_get (queues, json_string_value (parent)) : queue;
}

/* The properties that nodes of each of the queues have; a queue that requires
 * no property is on all nodes.
 */
static int find_queues (struct dws_config *config, json_t *queues,
                        dws_error_t *error)
{
    size_t index;
    json_t *name;

    if (!config->drain_queues)
        return 0;
    if (!(config->drain_properties = json_array ()))
        return dws_error_nomem (error);
    json_array_foreach (config->drain_queues, index, name) {
        json_t *queue = queue_with_nodes (queues, json_string_value (name));
        json_t *requires = json_object_get (queue, "requires");

        if (!queue)
            return dws_error (error, EINVAL,
                              "rabbit.drain_queues: there is no queue %s, or"
                              " not its parent",
                              json_string_value (name));
        if (requires && !is_text_array (requires))
            return dws_error (error, EINVAL,
                              "queues.%s.requires: expected an array of texts",
                              json_string_value (name));
        if (json_array_append_new (config->drain_properties,
                                   requires ? json_incref (requires)
                                            : json_array ()) < 0)
            return dws_error_nomem (error);
    }
    return 0;
}

struct dws_config *config_create (const flux_conf_t *conf,
                                  json_t *notes,
                                  dws_error_t *error)
{
    struct dws_config *config;
    json_t *table = NULL;
    json_t *queues = NULL;
    flux_error_t err;

    if (flux_conf_unpack (conf, &err, "{s?o s?o}",
                          "rabbit", &table,
                          "queues", &queues) < 0) {
        dws_error (error, errno, "%s", err.text);
        return NULL;
    }
    if (!(config = dws_config_create (table, notes, error)))
        return NULL;
    if (find_queues (config, queues, error) < 0
        || load_mapping (config, error) < 0
        || check_notice_command (config, notes, error) < 0) {
        dws_config_destroy (config);
        return NULL;
    }
    return config;
}

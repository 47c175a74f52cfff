/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Checks of everything that [rabbit] names outside of itself (files, programs, queues,
 * users, groups), and of keys that contradict each other. A reload and --check-config
 * run the same checks in the same order.
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libdws/util/spelling.h"
#include "config_site_private.h"

struct site {
    struct dws_config *config;
    json_t *table;
    json_t *queues;             // NULL: not known
};

/* Error texts are those of the scheduler, which reads the file as well.
 */
static json_t *load_file (const char *path, dws_error_t *error)
{
    json_t *o = NULL;
    json_error_t err;
    struct stat st;
    FILE *file;

    if (!(file = fopen (path, "re"))) {
        dws_error (error, EINVAL, "%s", strerror (errno));
        return NULL;
    }
    if (fstat (fileno (file), &st) == 0 && S_ISDIR (st.st_mode))
        dws_error (error, EINVAL, "%s", strerror (EISDIR));
    else if (!(o = json_loadf (file, 0, &err)))
        dws_error (error, EINVAL, "line %d: not JSON", err.line);
    fclose (file);
    return o;
}

static int load_mapping (const struct site *site, dws_error_t *error)
{
    const char *path = site->config->mapping;
    json_t *o;
    dws_error_t detail;

    if (!path)
        return 0;
    if (!(o = load_file (path, &detail)))
        return dws_error (error, EINVAL, "rabbit.mapping: %s: %s", path, detail.text);
    dws_topology_destroy (site->config->topology);
    site->config->topology = dws_topology_create (o, &detail);
    json_decref (o);
    if (!site->config->topology)
        return dws_error (error, errno, "rabbit.mapping: %s: %s", path, detail.text);
    return 0;
}

/* The agent reads the file as the same user, on this node.
 */
static int check_kubeconfig (const struct site *site, dws_error_t *error)
{
    const char *path = site->config->kubeconfig;
    const char *home = getenv ("HOME");
    char full[4096];
    struct stat st;
    int fd;
    int rc = -1;

    if (!path)
        return 0;
    if (path[0] != '/' && strncmp (path, "~/", 2) != 0)
        return dws_error (error, EINVAL, "rabbit.kubeconfig: expected an absolute "
                          "path, got \"%s\"", path);
    snprintf (full, sizeof (full), "%s%s", path[0] == '~' && home ? home : "",
              path[0] == '~' && home ? path + 1 : path);
    if ((fd = open (full, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        return dws_error (error, EINVAL, "rabbit.kubeconfig: %s: %s", path,
                          strerror (errno));
    if (fstat (fd, &st) < 0 || !S_ISREG (st.st_mode))
        dws_error (error, EINVAL, "rabbit.kubeconfig: %s: not a file", path);
    else
        rc = 0;
    close (fd);
    return rc;
}

/* The command runs as the instance owner, so nobody else may be able to write it.
 */
static int check_program (const struct site *site, dws_error_t *error)
{
    const char *path =
        json_string_value (json_array_get (site->config->notice_command, 0));
    struct stat st;

    if (!path)
        return 0;
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

/* Queues
 */

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

static int no_queue (const char *key, const char *name, json_t *queues,
                     dws_error_t *error)
{
    struct dws_nearest nearest = { .word = name };
    char hint[DWS_NEAREST_SIZE];
    const char *known;
    json_t *queue;

    json_object_foreach (queues, known, queue)
        dws_nearest_try (&nearest, known);
    return dws_error (error, EINVAL, "rabbit.%s: there is no queue %s%s", key, name,
                      dws_nearest_hint (&nearest, hint, sizeof (hint)));
}

/* The properties that nodes of one queue have: its own, or those of its parent
 * (RFC 33). A queue that requires no property is on all nodes.
 */
static int find_queue (const struct site *site, const char *name, dws_error_t *error)
{
    json_t *queue = json_object_get (site->queues, name);
    json_t *parent = json_object_get (queue, "parent");
    json_t *requires;

    if (parent) {
        name = json_string_value (parent);
        queue = json_object_get (site->queues, name);
    }
    if (!queue)
        return no_queue ("drain_queues", name ? name : "", site->queues, error);
    requires = json_object_get (queue, "requires");
    if (requires && !is_text_array (requires))
        return dws_error (error, EINVAL, "queues.%s.requires: expected an array of "
                          "texts", name);
    if (json_array_append_new (site->config->drain_properties,
                               requires ? json_incref (requires)
                                        : json_array ()) < 0)
        return dws_error_nomem (error);
    return 0;
}

static int find_queues (const struct site *site, dws_error_t *error)
{
    size_t index;
    json_t *name;

    if (!site->config->drain_queues || !site->queues)
        return 0;
    if (!(site->config->drain_properties = json_array ()))
        return dws_error_nomem (error);
    json_array_foreach (site->config->drain_queues, index, name) {
        if (find_queue (site, json_string_value (name), error) < 0)
            return -1;
    }
    return 0;
}

static int check_limits_queues (const struct site *site, dws_error_t *error)
{
    const char *rule;
    json_t *value;

    json_object_foreach (site->config->limits_table, rule, value) {
        const char *queue = json_string_value (json_object_get (value, "queue"));
        char key[128];

        snprintf (key, sizeof (key), "limits.%s.queue", rule);
        if (queue && site->queues && !json_object_get (site->queues, queue))
            return no_queue (key, queue, site->queues, error);
    }
    return 0;
}

/* Keys that contradict each other
 */

static int check_times (const struct site *site, dws_error_t *error)
{
    const struct dws_policy *policy = &site->config->policy;
    double space = site->config->space_timeout;

    /* A time below zero is no limit. */
    if (policy->teardown_after >= 0. && policy->postrun_timeout >= 0.
        && policy->teardown_after < policy->postrun_timeout)
        return dws_error (error, EINVAL, "rabbit.teardown_after: expected at least "
                          "rabbit.postrun_timeout (%g s), got %g s",
                          policy->postrun_timeout, policy->teardown_after);
    if (json_object_get (site->table, "space_timeout")
        && space >= 0. && policy->prolog_timeout >= 0.
        && space >= policy->prolog_timeout)
        return dws_error (error, EINVAL, "rabbit.space_timeout: expected less than "
                          "rabbit.prolog_timeout (%g s), got %g s",
                          policy->prolog_timeout, space);
    return 0;
}

/* An instance that starts ignores faults of checks that are not 'needed': jobs should not
 * lose their storage because a program is missing, or a user has left.
 */
static const struct {
    int (*check)(const struct site *site, dws_error_t *error);
    bool needed;
} checks[] = {
    { find_queues, true },
    { load_mapping, true },
    { check_kubeconfig, false },
    { check_program, false },
    { check_times, false },
    { check_limits_queues, false },
};

int dws_config_check_site (struct dws_config *config,
                           json_t *table,
                           json_t *queues,
                           json_t *faults,
                           json_t *notes,
                           dws_error_t *error)
{
    const struct site site = { config, table, queues };
    dws_error_t fault;

    for (size_t i = 0; i < sizeof (checks) / sizeof (checks[0]); i++) {
        json_t *where = faults ? faults : checks[i].needed ? NULL : notes;

        if (checks[i].check (&site, &fault) == 0)
            continue;
        if (!where || errno == ENOMEM)
            return dws_error (error, errno, "%s", fault.text);
        if (json_array_append_new (where, json_string (fault.text)) < 0)
            return dws_error_nomem (error);
    }
    return 0;
}

/* Users and groups
 */

static bool is_name (const char *s)
{
    return s && !(*s >= '0' && *s <= '9');
}

/* A name service that fails does not make the configuration wrong.
 */
static bool no_user (const char *name)
{
    struct passwd pw;
    struct passwd *result = NULL;
    char space[16384];

    return getpwnam_r (name, &pw, space, sizeof (space), &result) == 0
        && !result;
}

static bool no_group (const char *name)
{
    struct group gr;
    struct group *result = NULL;
    char space[65536];

    return getgrnam_r (name, &gr, space, sizeof (space), &result) == 0
        && !result;
}

static const char *name_of (json_t *rule, const char *key)
{
    const char *s = json_string_value (json_object_get (rule, key));

    return is_name (s) ? s : NULL;
}

bool dws_config_has_names (json_t *limits)
{
    const char *key;
    json_t *rule;

    json_object_foreach (limits, key, rule) {
        if (name_of (rule, "user") || name_of (rule, "group"))
            return true;
    }
    return false;
}

json_t *dws_config_unknown_names (json_t *limits)
{
    json_t *unknown = json_array ();
    const char *key;
    json_t *rule;

    json_object_foreach (limits, key, rule) {
        const char *user = name_of (rule, "user");
        const char *group = name_of (rule, "group");

        if (user && no_user (user))
            json_array_append_new (unknown, json_sprintf (
                "rabbit.limits.%s.user: there is no user %s", key, user));
        if (group && no_group (group))
            json_array_append_new (unknown, json_sprintf (
                "rabbit.limits.%s.group: there is no group %s", key, group));
    }
    return unknown;
}

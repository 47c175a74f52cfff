/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See config_checks_private.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "libdws/directive/capacity.h"
#include "libdws/directive/presets.h"
#include "libdws/util/spelling.h"
#include "config_checks_private.h"

int dws_config_expected (const char *name,
                         const char *what,
                         json_t *value,
                         dws_error_t *error)
{
    char *s = json_dumps (value, JSON_ENCODE_ANY | JSON_COMPACT);

    dws_error (error, EINVAL, "rabbit.%s: expected %s, got %s",
               name, what, s ? s : "something else");
    free (s);
    errno = EINVAL;
    return -1;
}

static int check_port (const char *s)
{
    char *end;
    long port;

    errno = 0;
    port = strtol (s, &end, 10);
    return *s >= '0' && *s <= '9' && *end == '\0' && errno == 0
        && port >= 0 && port <= 65535 ? 0 : -1;
}

/* Accept only the loopback and UNIX sockets: the metrics are for this node.
 */
int dws_config_check_metrics (const char *name,
                              json_t *value,
                              dws_error_t *error)
{
    static const char *const hosts[] = { "127.0.0.1:", "localhost:",
                                         "[::1]:" };
    const char *s = json_string_value (value);

    if (!strncmp (s, "unix:/", 6) && s[6] != '\0') {
        size_t max = sizeof (((struct sockaddr_un *)NULL)->sun_path) - 1;

        if (strlen (s + 5) <= max)
            return 0;
        return dws_error (error, EINVAL, "rabbit.%s: the path of a socket has %zu "
                          "bytes at most", name, max);
    }
    for (size_t i = 0; i < sizeof (hosts) / sizeof (hosts[0]); i++) {
        size_t len = strlen (hosts[i]);
        if (!strncmp (s, hosts[i], len) && check_port (s + len) == 0)
            return 0;
    }
    return dws_config_expected (name,
                                "127.0.0.1:PORT, [::1]:PORT or unix:/PATH",
                                value,
                                error);
}

static int unknown (const char *full, const char *what, const char *word,
                    const char *const *known, dws_error_t *error)
{
    struct dws_nearest nearest = { .word = word };
    char hint[DWS_NEAREST_SIZE];

    for (; *known; known++)
        dws_nearest_try (&nearest, *known);
    return dws_error (error, EINVAL, "rabbit.%s: unknown %s%s", full, what,
                      dws_nearest_hint (&nearest, hint, sizeof (hint)));
}

int dws_config_unknown_key (const char *full, const char *key,
                            const char *const *known, dws_error_t *error)
{
    return unknown (full, "key", key, known, error);
}

/* The value must be a number of GiB.
 */
static int unexpected_gib (const char *full, json_t *value, dws_error_t *error)
{
    const char *s = json_string_value (value);
    char guess[DWS_CAPACITY_GUESS_SIZE];
    int64_t bytes;

    if (!s || !dws_capacity_guess (s, guess)
        || dws_capacity_parse (guess, &bytes) < 0)
        return dws_config_expected (full, "GiB >= 0", value, error);
    return dws_error (error, EINVAL, "rabbit.%s: expected GiB >= 0, got \"%s\", "
                      "did you mean %g?", full, s, (double)bytes / (1 << 30));
}

static const char *const types[] = { "xfs", "gfs2", "raw", "lustre", NULL };

static bool is_type (const char *word)
{
    for (size_t i = 0; types[i]; i++) {
        if (!strcmp (word, types[i]))
            return true;
    }
    return false;
}

int dws_config_check_policy (const char *name,
                             json_t *value,
                             dws_error_t *error)
{
    static const char *const keys[] = { "maximums", NULL };
    json_t *maximums;
    const char *key;
    char full[128];

    json_object_foreach (value, key, maximums) {
        snprintf (full, sizeof (full), "%s.%s", name, key);
        if (strcmp (key, "maximums") != 0)
            return dws_config_unknown_key (full, key, keys, error);
    }
    if (!(maximums = json_object_get (value, "maximums")))
        return 0;
    if (!json_is_object (maximums))
        return dws_config_expected ("policy.maximums", "a table", maximums,
                                    error);
    json_object_foreach (maximums, key, value) {
        snprintf (full, sizeof (full), "%s.maximums.%s", name, key);
        if (!is_type (key))
            return unknown (full, "file system type", key, types, error);
        if (!json_is_number (value) || json_number_value (value) < 0.)
            return unexpected_gib (full, value, error);
    }
    return 0;
}

int dws_config_check_command (const char *name,
                              json_t *value,
                              dws_error_t *error)
{
    const char *path = json_string_value (json_array_get (value, 0));

    if (path && *path == '/')
        return 0;
    return dws_config_expected (name, "an array that begins with an absolute path",
                                value, error);
}

int dws_config_check_daemons (const char *name,
                              json_t *value,
                              dws_error_t *error)
{
    const char *key;
    json_t *unit;
    char full[128];

    json_object_foreach (value, key, unit) {
        snprintf (full, sizeof (full), "%s.%s", name, key);
        if (!json_is_string (unit) || json_string_length (unit) == 0)
            return dws_config_expected (full, "a systemd unit", unit, error);
    }
    return 0;
}

int dws_config_check_presets (const char *name,
                              json_t *value,
                              dws_error_t *error)
{
    dws_error_t detail;

    if (dws_presets_check (value, &detail) < 0)
        return dws_error (error, errno, "rabbit.%s.%s", name, detail.text);
    return 0;
}

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Keys of flux-coral2 that have another name here or are not needed, and keys that were
 * removed, each with advice.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config_old_private.h"

static const struct {
    const char *name;
    enum dws_config_old kind;
    const char *now;    // NULL: none
    const char *why;    // with none: why not
} old_keys[] = {
    { "restrict_persistent", DWS_KEY_OLD, "restrict_persistent_creation", NULL },
    { "dws_api_version", DWS_KEY_OLD, NULL,
      "has no effect, the API server tells its versions" },
    { "nnf_api_version", DWS_KEY_OLD, NULL,
      "has no effect, the API server tells its versions" },
    { "orphan_grace", DWS_KEY_GONE, NULL, "remove it, it is always 10 s" },
    { "offline_grace", DWS_KEY_GONE, NULL, "remove it, it is always 1 minute" },
    { "datamovement_grace", DWS_KEY_GONE, NULL,
      "remove it, and choose postrun_timeout and teardown_after as long as data "
      "may be moved" },
    { "container_log_bytes", DWS_KEY_GONE, NULL,
      "remove it, it is always 4096" },
    { "network_file_systems", DWS_KEY_GONE, NULL,
      "remove it, nodes reach Lustre by network and nothing else" },
    { "max_directives", DWS_KEY_GONE, NULL, "remove it, it is always 64" },
    { "max_directive_bytes", DWS_KEY_GONE, NULL,
      "remove it, it is always 65536" },
    { "persistent_notice", DWS_KEY_GONE, NULL,
      "remove it, it is always 72 hours" },
    { "notice_timeout", DWS_KEY_GONE, NULL,
      "remove it, it is always 1 minute; notice_command can end earlier by "
      "itself" },
    { "progress_interval", DWS_KEY_GONE, NULL, "remove it, it is always 2 s" },
    { "environment", DWS_KEY_GONE, NULL,
      "remove it, jobs get DW_* and NNF_*" },
    { "workers", DWS_KEY_GONE, NULL,
      "remove it, it is the option --workers of flux-coral2-dws" },
    { "allow_insecure_kubernetes", DWS_KEY_GONE, NULL,
      "remove it, it is the option --allow-insecure-kubernetes of "
      "flux-coral2-dws" },
    { "refuse_early", DWS_KEY_GONE, NULL,
      "remove it, jobs are refused when their storage is broken down" },
    { "avoid_suspects", DWS_KEY_GONE, NULL,
      "remove it, jobs try such rabbits; flux rabbit disable keeps them off" },
    { "data_first_yield", DWS_KEY_GONE, NULL,
      "remove it, it is a thirtieth of data_first_timeout, and 2 minutes at most" },
    { "preset_variables", DWS_KEY_GONE, NULL,
      "remove it, and write what they stand for into the presets" },
};

int dws_config_old_key (json_t *table,
                        const char *key,
                        const char **now,
                        char *note,
                        size_t size,
                        dws_error_t *error)
{
    for (size_t i = 0; i < sizeof (old_keys) / sizeof (old_keys[0]); i++) {
        json_t *other;

        if (strcmp (old_keys[i].name, key))
            continue;
        *now = old_keys[i].now;
        if (!*now) {
            snprintf (note, size, "rabbit.%s: %s", key, old_keys[i].why);
            return old_keys[i].kind;
        }
        other = json_object_get (table, *now);
        if (other && !json_equal (other, json_object_get (table, key))) {
            return dws_error (error, EINVAL,
                              "rabbit.%s: is the old name of rabbit.%s, which "
                              "has another value", key, *now);
        }
        snprintf (note, size, "rabbit.%s: is now called rabbit.%s", key, *now);
        return old_keys[i].kind;
    }
    return DWS_KEY_NOT_OLD;
}

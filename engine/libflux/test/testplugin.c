/* SPDX-License-Identifier: LGPL-3.0-only */
/* testplugin.c - a plugin to load: adds 1 to "n". */

#include <flux/core.h>

static int add_cb (flux_plugin_t *p, const char *topic,
                   flux_plugin_arg_t *args, void *data)
{
    int n;

    if (flux_plugin_arg_unpack (args, FLUX_PLUGIN_ARG_IN, "{s:i}", "n", &n) < 0)
        return -1;
    return flux_plugin_arg_pack (args, FLUX_PLUGIN_ARG_OUT, "{s:i}",
                                 "n", n + 1);
}

int flux_plugin_init (flux_plugin_t *p)
{
    if (flux_plugin_set_name (p, "test") < 0)
        return -1;
    return flux_plugin_add_handler (p, "test.*", add_cb, NULL);
}

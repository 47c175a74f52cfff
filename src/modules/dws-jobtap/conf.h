/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What the plugin is configured to do: its own options, and the table [rabbit].
 *
 * Its options are those of the load command. What loads it without any (a reload, the
 * rc script) gets those that the configuration has for it in [job-manager] plugins, and
 * follows flux config reload.
 */

#ifndef DWS_JOBTAP_CONF_H
#define DWS_JOBTAP_CONF_H

#include "job.h"

/* Check the options of the load command. Returns 0, or -1 and logs why.
 */
int jobtap_conf_init (struct jobtap *ctx);

/* For conf.update: takes over all of the configuration, or refuses it and keeps what was.
 */
int jobtap_conf_update_cb (flux_plugin_t *p,
                           const char *topic,
                           flux_plugin_arg_t *args,
                           void *arg);

#endif /* !DWS_JOBTAP_CONF_H */

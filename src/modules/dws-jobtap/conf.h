/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The plugin's configuration: its own options, and the table [rabbit].
 *
 * Options come from the load command. If that has none (a reload, the rc script), the
 * plugin uses its options in [job-manager] plugins, and follows flux config reload.
 */

#ifndef DWS_JOBTAP_CONF_H
#define DWS_JOBTAP_CONF_H

#include "job.h"

/* Check the options of the load command. Returns 0, or -1 and logs why.
 */
int jobtap_conf_init (struct jobtap *ctx);

/* For conf.update: accepts the whole configuration, or rejects it and keeps the previous
 * one.
 */
int jobtap_conf_update_cb (flux_plugin_t *p,
                           const char *topic,
                           flux_plugin_arg_t *args,
                           void *arg);

#endif /* !DWS_JOBTAP_CONF_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Learning the facts of all active jobs from the jobtap plugin: at the start,
 * and whenever there is a doubt.
 */

#ifndef DWS_SYNC_H
#define DWS_SYNC_H

#include <stdbool.h>

#include "base/ctx.h"

struct sync *sync_create (struct dws_ctx *ctx);
void sync_destroy (struct sync *sync);

/* Ask the plugin for all jobs now. While the plugin is not loaded, it is asked
 * again later.
 */
void sync_start (struct sync *sync);

/* The plugin was loaded, or goes: what has happened to jobs while it was away is
 * known when it has told of them.
 */
void sync_plugin (struct sync *sync, bool loaded);

/* False while the plugin is away: jobs end then, and this module does not hear
 * of it.
 */
bool sync_alive (const struct sync *sync);

/* The release of the plugin; NULL while it is not known, or if it does not say.
 */
const char *sync_release (const struct sync *sync);

/* True once all jobs are known.
 */
bool sync_done (const struct sync *sync);

#endif /* !DWS_SYNC_H */

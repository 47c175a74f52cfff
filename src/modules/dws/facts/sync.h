/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Reads the facts of all active jobs from the jobtap plugin: at the start, and
 * when jobs may have changed unseen.
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

/* The plugin was loaded, or unloads. Changes of jobs during its absence are known after
 * the next sync.
 */
void sync_plugin (struct sync *sync, bool loaded);

/* False while the plugin is away, during which this module does not learn that
 * jobs end.
 */
bool sync_alive (const struct sync *sync);

/* The release of the plugin; NULL while it is not known, or if it does not say.
 */
const char *sync_release (const struct sync *sync);

/* True once all jobs are known.
 */
bool sync_done (const struct sync *sync);

#endif /* !DWS_SYNC_H */

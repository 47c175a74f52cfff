/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Drains of the resource module, as the broker module and the plugin want them.
 */

#ifndef LIBUTIL_DRAIN_H
#define LIBUTIL_DRAIN_H

#include <flux/core.h>

/* Drain nodes, a hostlist or an idset of ranks. With mode "update" those that are
 * drained already keep their reason, with "overwrite" they get this one.
 */
static inline flux_future_t *drain_nodes (flux_t *h, const char *targets,
                                          const char *mode, const char *reason)
{
    return flux_rpc_pack (h, "resource.drain", 0, 0, "{s:s s:s s:s}",
                          "targets", targets,
                          "mode", mode,
                          "reason", reason);
}

#endif /* !LIBUTIL_DRAIN_H */

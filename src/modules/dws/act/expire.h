/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Persistent file systems that have expired are destroyed, by workflows that belong to
 * no job. libdws/decide/leases.h decides; this part sends the commands.
 */

#ifndef DWS_EXPIRE_H
#define DWS_EXPIRE_H

#include "base/ctx.h"

struct expire *expire_create (struct dws_ctx *ctx);
void expire_destroy (struct expire *expire);

/* File systems, jobs or the configuration have changed: check again soon.
 */
void expire_look (struct expire *expire);

/* The agent is gone: pending commands get no result.
 */
void expire_agent_lost (struct expire *expire);

#endif /* !DWS_EXPIRE_H */

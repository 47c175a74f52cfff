/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Persistent file systems that have expired are destroyed, by workflows that belong to
 * no job. What is to be done is decided in libdws/decide/leases.h.
 */

#ifndef DWS_EXPIRE_H
#define DWS_EXPIRE_H

#include "base/ctx.h"

struct expire *expire_create (struct dws_ctx *ctx);
void expire_destroy (struct expire *expire);

/* Something has changed, of file systems, jobs or the configuration: look again soon.
 */
void expire_look (struct expire *expire);

/* The results of commands will not come any more.
 */
void expire_agent_lost (struct expire *expire);

#endif /* !DWS_EXPIRE_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Jobs that have their data and wait for nodes, while these are idle: a scheduler that
 * lets nobody pass the first in the queue may keep them for a job that waits for the
 * very storage that such a job has. From time to time somebody has to look, as nothing
 * happens then.
 */

#ifndef DWS_ACT_STANDOFF_H
#define DWS_ACT_STANDOFF_H

#include "base/ctx.h"

struct contention *contention_create (struct dws_ctx *ctx);
void contention_destroy (struct contention *contention);

#endif /* !DWS_ACT_STANDOFF_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Contention: a data-first job has its data and waits for nodes that are idle, because
 * a scheduler without backfill reserves them for a job that waits for that very
 * storage. No event reports contention, so a timer checks for it.
 */

#ifndef DWS_ACT_CONTENTION_H
#define DWS_ACT_CONTENTION_H

#include "base/ctx.h"

flux_watcher_t *contention_create (struct dws_ctx *ctx);

#endif /* !DWS_ACT_CONTENTION_H */

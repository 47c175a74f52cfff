/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Doubts workflows that should have advanced and had no report for a minute, since a
 * watch can silently fail. act/look.c then reads them by their names.
 */

#ifndef DWS_OVERDUE_H
#define DWS_OVERDUE_H

#include "base/ctx.h"

flux_watcher_t *overdue_create (struct dws_ctx *ctx);

#endif /* !DWS_OVERDUE_H */

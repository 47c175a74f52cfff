/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Rate-limited log lines for failures that hit many jobs, or one job
 * repeatedly: the first few are logged, the others counted, and the count is
 * logged from time to time until the failures end.
 */

#ifndef DWS_ACT_ERRORLOG_H
#define DWS_ACT_ERRORLOG_H

#include "libdws/decide/reconcile.h"
#include "base/ctx.h"
#include "facts/jobs.h"

struct errorlog *errorlog_create (struct dws_ctx *ctx);
void errorlog_destroy (struct errorlog *errorlog);

/* Log the failure of an action. 'code' (errno, HTTP status) distinguishes
 * causes.
 */
void errorlog_add (struct job *job, enum dws_action_kind kind, int code,
                   const char *text);

#endif /* !DWS_ACT_ERRORLOG_H */

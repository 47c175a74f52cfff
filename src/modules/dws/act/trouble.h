/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Rate-limited log lines for failures that hit many jobs, or one job
 * repeatedly: the first few are logged, the others counted, and the count is
 * logged from time to time until the failures end.
 */

#ifndef DWS_TROUBLE_H
#define DWS_TROUBLE_H

#include "libdws/decide/reconcile.h"
#include "base/ctx.h"
#include "facts/jobs.h"

struct troubles *troubles_create (struct dws_ctx *ctx);
void troubles_destroy (struct troubles *troubles);

/* Log the failure of an action. 'code' (errno, HTTP status) distinguishes
 * causes.
 */
void trouble_log (struct job *job, enum dws_action_kind kind, int code,
                  const char *text);

#endif /* !DWS_TROUBLE_H */

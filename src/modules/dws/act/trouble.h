/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Log lines about what fails for one job after another, or again and again:
 * the first few are written, the others counted, and the count is written from
 * time to time until it is over.
 */

#ifndef DWS_TROUBLE_H
#define DWS_TROUBLE_H

#include "libdws/decide/reconcile.h"
#include "base/ctx.h"
#include "facts/jobs.h"

struct troubles *troubles_create (struct dws_ctx *ctx);
void troubles_destroy (struct troubles *troubles);

/* An action has failed for a job. 'code' (errno, HTTP status) tells causes
 * apart.
 */
void trouble_log (struct job *job, enum dws_action_kind kind, int code,
                  const char *text);

#endif /* !DWS_TROUBLE_H */

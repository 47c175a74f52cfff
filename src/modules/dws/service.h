/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The requests that the module answers.
 */

#ifndef DWS_SERVICE_H
#define DWS_SERVICE_H

#include "base/ctx.h"

/* Register the handlers in ctx->handlers.
 */
int service_start (struct dws_ctx *ctx);

#endif /* !DWS_SERVICE_H */

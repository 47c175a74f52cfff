/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What jobs already hold on the rabbits when this module starts. The module
 * that was there before has written it into their Servers objects.
 */

#ifndef DWS_USAGE_H
#define DWS_USAGE_H

#include "ctx.h"

/* Find out, if it is not known. To be called when the workflows have become
 * known.
 */
void usage_start (struct dws_ctx *ctx);

/* Until then nothing may be laid out. It comes soon, so try again.
 */
bool usage_known (const struct dws_ctx *ctx);

#endif /* !DWS_USAGE_H */

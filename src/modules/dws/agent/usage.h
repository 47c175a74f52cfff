/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * What jobs already hold on the rabbits when this module starts, from their
 * Servers objects: the module that ran before has written it there.
 */

#ifndef DWS_USAGE_H
#define DWS_USAGE_H

#include "base/ctx.h"

/* Find out what jobs hold, unless that is known (space_known()). To be called
 * when the workflows have become known.
 */
void usage_start (struct dws_ctx *ctx);

#endif /* !DWS_USAGE_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * The nodes that nobody waits for any more while file systems are unmounted: jobs did
 * without them, and they are not unmounted although all the others are.
 */

#ifndef DWS_WAIVED_H
#define DWS_WAIVED_H

#include <jansson.h>

#include "base/ctx.h"

/* All of them, {HOST: true}, or null if that is not known (yet): what is the case
 * shall stay so. Not those that another job uses, whose file system would not be waited
 * for either. A new object, NULL for lack of memory.
 */
json_t *waived_nodes (struct dws_ctx *ctx);

#endif /* !DWS_WAIVED_H */

/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Touches: changes of an annotation of a job's Computes object, which make NNF
 * reconcile the job's devices at once (libdws/decide/touch.c says when). Touches are
 * optional: NNF reconciles by itself, later.
 */

#ifndef DWS_ACT_TOUCH_H
#define DWS_ACT_TOUCH_H

#include "base/ctx.h"
#include "base/pace.h"

struct pace *touches_create (void);

#endif /* !DWS_ACT_TOUCH_H */
